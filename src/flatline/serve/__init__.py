"""
What a target holds, behind Prometheus's HTTP API: Grafana opens a dead run.

asked      the parameters of a request, told from its text
held       the opened target, and every answer it gives
api        one function an endpoint
listening  connections: who may come, how much of each is read, and for how long
dashboard  panels for what the target holds, as Grafana imports them

Nothing is ever written, and nothing outside the target is asked.
"""
