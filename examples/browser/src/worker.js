// The worker that judges the minifier's candidates, as a child process does in Node.
import { serveWorker, setLogSink } from 'tensorfx/debug'
import { init } from 'tensorfx/webgpu'

setLogSink(() => {})
serveWorker()
// Candidates of the backend 'webgpu' run here. Without a GPU they fail with the reason.
init({ fallback: 'wasm' }).catch(() => {})
