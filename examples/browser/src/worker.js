// Stands for the child process: judges the minifier's candidates.
import 'tensorfx'
import { serveWorker, setLogSink } from 'tensorfx/debug'

setLogSink(() => {})
serveWorker()
