// A worker that judges candidates of the minifier on the GPU, with a fault planted in its shaders.
import { serveWorker, setLogSink } from 'tensorfx/debug'
import { init } from 'tensorfx/webgpu'
import { FAULTS, planted } from '../device/faultList.ts'
import { WORKER_FAULT } from './workerFault.ts'

setLogSink(() => {})
const fault = FAULTS.find((one) => one.fault === WORKER_FAULT)
if (fault !== undefined) planted(WORKER_FAULT, fault.edit)
serveWorker()
void init({ fallback: 'wasm', thread: false })
