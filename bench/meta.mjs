// npm run bench:meta [-- --against FOLDER]: what the shape rules of 13 operators cost, as calls on fake tensors: nanoseconds, and as a multiple of those of another build of tensorfx, whose checkout is FOLDER. Both are timed in
// turns, in processes of their own; of each operator the fastest of all runs counts.
import './oneThread.mjs'
import { fork } from 'node:child_process'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const ROUNDS = 7
const CALLS = 4000

/** Nanoseconds for a call of each operator. */
async function measure(root) {
  const load = (name) => import(pathToFileURL(join(root, 'dist', `${name}.js`)).href)
  const [{ torch, nn }, { FakeTensorMode, withMode }] = await Promise.all([load('index'), load('entries/dispatch')])
  const F = nn.functional
  const fastest = {}
  withMode(new FakeTensorMode(), () => {
    const [x, weight, bias, image, kernel, table, square] = [[8, 16, 32], [64, 32], [64], [2, 3, 16, 16], [4, 3, 3, 3], [100, 32], [16, 16]].map(
      (shape) => torch.zeros(shape),
    )
    const row = torch.zeros([32])
    const rows = torch.zeros([8], { dtype: 'int64' })
    const operators = {
      add: () => x.add(row),
      mul: () => x.mul(x),
      relu: () => x.relu(),
      matmul: () => square.matmul(square),
      linear: () => F.linear(x, weight, bias),
      view: () => x.view([8, 512]),
      transpose: () => x.transpose(0, 1),
      cat: () => torch.cat([x, x], 1),
      sum: () => x.sum(1),
      softmax: () => x.softmax(-1),
      layerNorm: () => F.layerNorm(x, [32]),
      conv2d: () => F.conv2d(image, kernel),
      embedding: () => F.embedding(rows, table),
    }
    for (const [name, call] of Object.entries(operators))
      for (let round = 0; round < ROUNDS; round++) {
        const start = process.hrtime.bigint()
        for (let i = 0; i < CALLS; i++) call()
        fastest[name] = Math.min(fastest[name] ?? Infinity, Number(process.hrtime.bigint() - start) / CALLS)
      }
  })
  return fastest
}

/** What a process of this file sends. */
function measured(root) {
  const child = fork(fileURLToPath(import.meta.url), ['--child', root])
  return new Promise((done, failed) => {
    child.on('message', done)
    child.on('exit', (code) => code !== 0 && failed(new Error(`${root}: exit code ${code}`)))
  })
}

const { values } = parseArgs({ options: { child: { type: 'string' }, against: { type: 'string' }, turns: { type: 'string', default: '5' } } })
if (values.child !== undefined) {
  process.send(await measure(values.child))
  process.disconnect()
} else {
  const roots = [fileURLToPath(new URL('..', import.meta.url)), ...(values.against === undefined ? [] : [resolve(values.against)])]
  const best = roots.map(() => ({}))
  for (let turn = 0; turn < Number(values.turns); turn++)
    for (const [i, root] of roots.entries())
      for (const [name, ns] of Object.entries(await measured(root))) best[i][name] = Math.min(best[i][name] ?? Infinity, ns)
  const [own, other] = best
  for (const [name, ns] of Object.entries(own))
    console.log(
      `${name.padEnd(10)} ${ns.toFixed(0).padStart(5)} ns${other === undefined ? '' : `  ${(ns / other[name]).toFixed(2)} of the other build`}`,
    )
  if (other !== undefined) {
    const logs = Object.entries(own).map(([name, ns]) => Math.log(ns / other[name]))
    console.log(`${Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length).toFixed(3)} in the geometric mean`)
  }
}
