// tensorfx/debug/worker: a worker that judges the minifier's candidates, for `workerHelper(() => new Worker(new URL('tensorfx/debug/worker', import.meta.url)))`. It
// imports the modules that register backends by itself.
import { setLogSink, serveWorker } from '../../debug/index.ts'
import { installCompile } from '../../install/compile.ts'

installCompile()
// The answer carries what a candidate says; the page prints what matters.
setLogSink(() => {})
serveWorker()
