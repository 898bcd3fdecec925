// npm run demo: what tensorfx is for, in four parts. See the README.
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { loadDigits } from './model.mjs'
import { train } from './a-train.mjs'
import { traceAndFuse } from './b-fuse.mjs'
import { compileFused } from './c-compile.mjs'
import { debug } from './d-debug.mjs'
import { writeReport } from './report.mjs'

const started = performance.now()
const report = fileURLToPath(new URL('../../demo-report', import.meta.url))
await mkdir(report, { recursive: true })
process.chdir(report)

const data = await loadDigits()
const trained = await train(data)
if (trained.accuracy < 0.96) throw new Error(`test accuracy ${trained.accuracy} is below 96%`)
const graphs = traceAndFuse(trained.model, data)
const compiled = await compileFused(graphs.fused, data)
const hunt = await debug(graphs.fused, data, report)
const page = await writeReport(report, { trained, graphs, compiled, hunt })
console.log(`\nDone in ${((performance.now() - started) / 1000).toFixed(1)} s. Pictures: ${page}`)
