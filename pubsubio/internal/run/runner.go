package run

// Names under which Beam's own runners are registered (RegisterRunner in
// runners/prism, runners/direct, runners/dataflow, runners/flink and
// runners/spark).

// IsPrism reports whether a value of the flag --runner names prism.
func IsPrism(runner string) bool { return runner == "prism" || runner == "PrismRunner" }

// IsDirect reports whether it names the direct runner.
func IsDirect(runner string) bool { return runner == "direct" || runner == "DirectRunner" }

// IsDataflow reports whether it names Dataflow.
func IsDataflow(runner string) bool { return runner == "dataflow" || runner == "DataflowRunner" }

// NeverCheckpoints reports whether it names a runner of Beam's that submits to a
// cluster without being able to turn its checkpoints on, so that no bundle is
// ever finalized.
func NeverCheckpoints(runner string) bool {
	switch runner {
	case "flink", "FlinkRunner", "spark", "SparkRunner":
		return true
	}
	return false
}
