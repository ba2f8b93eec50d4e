"""`make designs`: one task on the same faults, done by simpler designs and by Outlast. The benchmarks' README says what is measured."""
