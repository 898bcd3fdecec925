// The worker that judges the minifier's candidates, as a child process does in Node.
import { serveWorker, setLogSink } from 'tensorfx/debug'

setLogSink(() => {})
serveWorker()
