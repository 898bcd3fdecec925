// node bench/engines/unchanged.mjs: whether two builds compile the rows of bench:engines to the same programs, byte for byte: the printed graphs, the JavaScript that calls the kernels, the kernels' loops as text, and every
// WebAssembly module that is made meanwhile, those of eager kernels included. TENSORFX_BENCH_BASE is a checkout with an older build in dist/. For changes that must not touch static graphs.
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rows } from './rows.mjs'

const digest = (value) => createHash('sha256').update(value).digest('hex')

/** What the build in a checkout makes of each row: lists of digests, by what they are of. */
async function compiledIn(root) {
  const modules = []
  const { Module } = WebAssembly
  WebAssembly.Module = class extends Module {
    constructor(bytes) {
      modules.push(digest(bytes))
      super(bytes)
    }
  }
  const from = (file) => import(pathToFileURL(join(root, file)))
  const { compile, nn, noGrad, optim, torch } = await from('dist/index.js')
  const { compileFx } = await from('dist/entries/inductor.js')
  const build = { compile, nn, noGrad, optim, torch, F: nn.functional, example: (file) => from(join('examples', file)) }
  const found = []
  for (const row of rows) {
    modules.length = 0
    const programs = []
    const backend = Object.assign(
      (gm, inputs) => {
        const program = compileFx(gm, inputs)
        programs.push(gm.code, program.source, ...program.kernels.map((kernel) => kernel.text))
        return program
      },
      { staticShapes: true },
    )
    torch.manualSeed(1)
    const inputs = Object.fromEntries(Object.entries(row.inputs).map(([name, input]) => [name, valueOf(torch, input)]))
    const state = { F: build.F, ...(await row.prepare?.({ ...build, compile: (fn) => compile(fn, { backend }) })) }
    const run = compile((values) => row.ours(values, state), { backend })
    const once = () => run(inputs)
    for (let i = 0; i < 2; i++) {
      if (row.trains === true) once()
      else noGrad(once)
    }
    found.push({ name: row.name, 'programs as text': programs.map(digest), 'WebAssembly modules': [...modules] })
  }
  return found
}

function valueOf(torch, input) {
  const { shape, below, scale = 1 } = Array.isArray(input) ? { shape: input } : input
  return below === undefined ? torch.randn(shape).mul(scale) : torch.randint(0, below, shape)
}

/** The same in a process of its own. */
function inProcess(root) {
  const child = fork(fileURLToPath(import.meta.url), [root])
  return new Promise((done, fail) => {
    let found = null
    child.on('message', (message) => (found = message))
    child.on('exit', (code) => (found === null ? fail(new Error(`${root}: exit code ${code}`)) : done(found)))
  })
}

if (process.send !== undefined) {
  process.send(await compiledIn(process.argv[2]))
  process.disconnect()
} else {
  const base = process.env.TENSORFX_BENCH_BASE
  if (base === undefined) throw new Error('TENSORFX_BENCH_BASE must be a checkout with a build in dist/.')
  const now = await inProcess(fileURLToPath(new URL('../..', import.meta.url)))
  const before = await inProcess(resolve(base))
  const totals = {}
  for (const [i, { name, ...parts }] of now.entries())
    for (const [what, list] of Object.entries(parts)) {
      totals[what] = (totals[what] ?? 0) + list.length
      if (list.join() === before[i][what].join()) continue
      console.log(`${name}: ${what} differ (${list.length} now, ${before[i][what].length} before)`)
      process.exitCode = 1
    }
  console.log(
    `${now.length} rows: ${Object.entries(totals)
      .map(([what, count]) => `${count} ${what}`)
      .join(', ')}${process.exitCode === 1 ? '' : ': all the same'}`,
  )
}
