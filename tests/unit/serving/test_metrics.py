"""What was asked and how long it took."""

from r2n.serving.metrics import Metrics


def test_requests_are_counted_by_route_and_status() -> None:
    metrics = Metrics()
    metrics.count_request("/api/query", 200, 0.003)
    metrics.count_request("/api/query", 200, 0.2)
    metrics.count_request("/api/query", 422, 99.0)
    metrics.count_pass(3)
    lines = metrics.text().splitlines()
    assert 'r2n_requests_total{route="/api/query",status="200"} 2' in lines
    assert 'r2n_requests_total{route="/api/query",status="422"} 1' in lines
    assert 'r2n_request_seconds_bucket{route="/api/query",le="0.005"} 1' in lines
    assert 'r2n_request_seconds_bucket{route="/api/query",le="0.25"} 2' in lines
    assert 'r2n_request_seconds_bucket{route="/api/query",le="10.0"} 2' in lines
    assert 'r2n_request_seconds_bucket{route="/api/query",le="+Inf"} 3' in lines
    assert 'r2n_request_seconds_sum{route="/api/query"} 99.203000' in lines
    assert "r2n_passes_total 1" in lines
    assert "r2n_passed_requests_total 3" in lines


def test_every_metric_has_its_help_and_its_type() -> None:
    lines = Metrics().text().splitlines()
    helped, typed = ([line.split()[2] for line in lines if line.startswith(f"# {word}")] for word in ("HELP", "TYPE"))
    assert helped == typed
    assert {line.split()[0] for line in lines if not line.startswith("#")} <= set(helped)
