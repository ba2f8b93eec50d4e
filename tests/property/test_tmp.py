from collections import Counter
import pytest
from tests.property import test_machine as tm
from flows.services import arrows, sweeps, proceed
C=Counter()
def test_cov(clock, monkeypatch):
    tm.Record.clock=clock
    orig=tm.Record.the_record_is_what_the_model_says
    from tests.property.model import Run
    for n in ("take","finish","fail","pause","resume","hear","put_back","end","_enter_ask","_suspend"):
        f=getattr(Run,n)
        def w(self,*a,n=n,f=f,**k):
            before=(self.status, self.node)
            r=f(self,*a,**k); C[n, before[0], before[1], self.status]+=1; return r
        monkeypatch.setattr(Run,n,w)
    from hypothesis import settings, HealthCheck
    tm.run_state_machine_as_test(tm.Record, settings=settings(max_examples=60, stateful_step_count=45, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)))
    for k,v in sorted(C.items()): print("COV", k, v)
@pytest.mark.parametrize("m", ["pause", "early", "visit"])
def test_mut(clock, monkeypatch, m):
    tm.Record.clock=clock
    if m=="pause":
        o=arrows.put_back
        def bad(owned):
            owned.pause=False
            return o(owned)
        monkeypatch.setattr(arrows,"put_back",bad)
    if m=="early":
        from flows.store import events
        o2=events.early
        monkeypatch.setattr(events,"early",lambda *a: None)
    if m=="visit":
        from flows.store import leave
        monkeypatch.setattr(leave,"withdraw_pause",lambda *a: False)
    from hypothesis import settings, HealthCheck
    with pytest.raises(BaseException):
        tm.run_state_machine_as_test(tm.Record, settings=settings(max_examples=60, stateful_step_count=45, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)))
