package server

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tine/api"
)

// metrics are the figures of one server, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

var _ api.Observer = (*metrics)(nil)

// newMetrics returns the figures of requests and of the process.
func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tine_http_requests_total",
			Help: "Requests answered, by route, method and class of status.",
		}, []string{"route", "method", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tine_http_request_duration_seconds",
			Help:    "Time from a request's arrival to the end of its answer, by route, method and class of status.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method", "status"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "tine_build_info",
		Help:        "Which build of Tine runs; the value is always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.latency, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler serves the figures in Prometheus's text format.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// ObserveRequest implements api.Observer.
func (m *metrics) ObserveRequest(method, route string, status int, took time.Duration) {
	class := strconv.Itoa(status/100) + "xx"
	m.requests.WithLabelValues(route, methodLabel(method), class).Inc()
	m.latency.WithLabelValues(route, methodLabel(method), class).Observe(took.Seconds())
}

// methodLabel keeps clients from making labels of their own.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete:
		return method
	}
	return "other"
}
