"""Worked examples, each an ordinary Django app that uses Outlast as any outside app would."""
