// npm run fuzz:compile -- N seed: N random programs against eager. Program i has the seed `seed + i`, so `-- 1 SEED` runs one alone.
//
//   --with makeFx|reinplace|aot   traces instead of compile
//   --with automatic|dynamic      eight calls with shapes drawn anew; compile's option dynamic left out, or true. Of one program in ten the graphs are counted
//   --backend NAME       of compile; default inductor. 'webgpu' leaves to WebAssembly what has no shader
//   --native             kernels are machine code too: each program runs again once that is compiled, and every call is compared with WebAssembly bit for bit
//   --kept               each program runs twice, the second time with the graphs and modules that were kept at the first, as in another process
//   --debugger           each setting of the debugger against none, bit for bit
//   --kinds a,b          only these kinds of programs; --except a,b leaves some out
//   --stop K             after K failures (default 10)
//   --as-drawn           does not shrink programs
//   --all                shows also the program as it was before shrinking
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { loadApi } from './api.mjs'
import { settings } from './debugger.mjs'
import { fuzzOne, graphsOf, hasNewShapes, kindsOf } from './fuzz.mjs'
import { memoryStore } from './memoryStore.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    with: { type: 'string', default: 'compile' },
    backend: { type: 'string', default: 'inductor' },
    native: { type: 'boolean', default: false },
    kept: { type: 'boolean', default: false },
    debugger: { type: 'boolean', default: false },
    kinds: { type: 'string' },
    except: { type: 'string', default: '' },
    stop: { type: 'string', default: '10' },
    all: { type: 'boolean', default: false },
    'as-drawn': { type: 'boolean', default: false },
  },
})

/** How long the GPU may take for an answer, in milliseconds. A driver on the CPU has taken more than five minutes for one kernel with many functions (seed 33010539). */
const DRIVER_TIMEOUT = 20_000

const dist = fileURLToPath(new URL('../../dist', import.meta.url))
const api = await loadApi((name) => import(`${dist}/${name}.js`))
if (values.backend === 'webgpu') {
  const { init } = await import(`${dist}/entries/webgpu.js`)
  // Hundreds of graphs are made between two times that the program yields, and a driver on the CPU holds a megabyte for each kernel.
  await init({ fallback: 'wasm', timeout: DRIVER_TIMEOUT, limits: { kernels: 256 } })
}
const native = values.native ? await import(`${dist}/entries/native.js`) : null
await native?.init({ check: true })
const memory = values.kept ? memoryStore() : null
if (memory !== null) (await import(`${dist}/protocol/index.js`)).setResultStore(memory.store)
if (values.debugger && values.with !== 'compile') throw new Error('--debugger compares compiled programs')
const count = Number(positionals[0] ?? 500)
const first = Number(positionals[1] ?? Math.floor(Math.random() * 1e6))
const kinds = (values.kinds?.split(',') ?? kindsOf(values.with)).filter((kind) => !values.except.split(',').includes(kind))
console.log(`${count} programs from seed ${first}, ${values.with}: ${kinds.join(', ')}`)

const failures = []
const start = performance.now()
let ran = 0
/** The seeds of programs that were not judged. */
const tooSlow = new Set()
const run = (seed) =>
  fuzzOne(api, seed, {
    with: values.with,
    backend: values.backend,
    kinds,
    settings: values.debugger ? settings : null,
    shrinking: !values['as-drawn'],
    onTooSlow: (slow) => tooSlow.add(slow),
  })
const counted = { programs: 0, graphs: 0, rule: 0, above: [] }
/** Counts the graphs of a program. */
function countOf(seed) {
  const { graphs, rule } = graphsOf(api, seed, { with: values.with, backend: values.backend, kinds })
  counted.programs++
  counted.graphs += graphs
  counted.rule += rule
  if (graphs > rule) counted.above.push(seed)
}
/** Kernels are compiled for so many programs at a time. */
const TOGETHER = 50
for (let seed = first; seed < first + count && failures.length < Number(values.stop); seed++) {
  if (native !== null && (seed - first) % TOGETHER === 0) {
    for (let early = seed; early < Math.min(seed + TOGETHER, first + count); early++) run(early)
    await native.ready()
  }
  if (memory !== null) {
    memory.results.clear()
    run(seed)
  }
  const found = run(seed)
  ran++
  if (found === null && hasNewShapes(values.with) && seed % 10 === 0) countOf(seed)
  // What a weak reference was asked for stays alive until the program yields.
  if (ran % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  if (found === null) continue
  failures.push(found)
  const { where, expected, got } = found.difference
  console.log(
    `\nseed ${seed} (${found.kinds.join(', ')}):\n${values.all ? `${found.full}\n--- shrunk\n` : ''}${found.text}\n// ${where}\n//   ${values.debugger ? 'without the debugger' : 'eager'}: ${expected}\n//   ${values.debugger ? 'with it' : values.with}: ${got}`,
  )
}
const seconds = (performance.now() - start) / 1000
console.log(
  `\n${ran} programs in ${seconds.toFixed(1)} s, ${failures.length} differ${failures.length === 0 ? '' : `: seeds ${failures.map((f) => f.seed).join(', ')}`}`,
)
if (tooSlow.size > 0) console.log(`not judged, since the driver took longer than ${DRIVER_TIMEOUT / 1000} s: seeds ${[...tooSlow].join(', ')}`)
if (counted.programs > 0) {
  const mean = (sum) => (sum / counted.programs).toFixed(2)
  const above = counted.above.length === 0 ? '' : `; more than it gives: seeds ${counted.above.join(', ')}`
  console.log(
    `graphs in the mean of ${counted.programs} programs: ${mean(counted.graphs)}; PyTorch's rule gives at most ${mean(counted.rule)}${above}`,
  )
}
if (native !== null) {
  const { kernels, compiled } = native.stats()
  console.log(`${kernels.filter(({ why }) => why === null).length} of ${kernels.length} kernels were machine code, in ${compiled} libraries`)
}
if (memory !== null) console.log(`${memory.counts.kept} graphs were kept, and ${memory.counts.found} found`)
process.exitCode = failures.length === 0 ? 0 : 1
