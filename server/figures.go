package server

import "github.com/prometheus/client_golang/prometheus"

// figures are numbers that are read from a T when they are asked for.
type figures[T any] []figure[T]

type figure[T any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(T) float64
}

// number is what a figure may be read as.
type number interface {
	int | int64 | uint64
}

// gauge returns a figure that goes up and down.
func gauge[T any, N number](name, help string, read func(T) N, labels ...string) figure[T] {
	return newFigure(prometheus.GaugeValue, name, help, read, labels)
}

// counter returns a figure that only goes up.
func counter[T any, N number](name, help string, read func(T) N, labels ...string) figure[T] {
	return newFigure(prometheus.CounterValue, name, help, read, labels)
}

func newFigure[T any, N number](kind prometheus.ValueType, name, help string, read func(T) N, labels []string) figure[T] {
	return figure[T]{
		desc: prometheus.NewDesc(name, help, labels, nil),
		kind: kind,
		read: func(from T) float64 { return float64(read(from)) },
	}
}

func (fs figures[T]) describe(out chan<- *prometheus.Desc) {
	for _, f := range fs {
		out <- f.desc
	}
}

// collect reads every figure from a T, under the values of the figures' labels.
func (fs figures[T]) collect(out chan<- prometheus.Metric, from T, labels ...string) {
	for _, f := range fs {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(from), labels...)
	}
}
