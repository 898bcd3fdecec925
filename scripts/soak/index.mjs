// npm run soak -- [--minutes 30] [--seed 1] [--limit 512]: see soak.mjs. `--limit` is config.memoryLimit in MiB. Prints figures every so often, and at the end; the exit status is 1 if a number
// was wrong or memory grew.
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { randomFrom } from '../fuzz/random.mjs'
import { growth, soak } from './soak.mjs'

const MIB = 2 ** 20
const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' }, limit: { type: 'string' } } })
const [minutes, seed, limit] = [Number(values.minutes ?? 30), Number(values.seed ?? 1), Number(values.limit ?? 512)]
const dist = (entry) => new URL(`../../dist/${entry}.js`, import.meta.url).href
const { torch, compile, config, noGrad } = await import(dist('index'))
const kernels = await import(dist('entries/kernels'))
const { reset } = await import(dist('entries/compile'))
config.memoryLimit = limit * MIB

/** Runs a worker, and kills it half of the time. */
async function worker(_api, number) {
  const random = randomFrom(number)
  const env = { ...process.env, TENSORFX_MEMORY_LIMIT: String(64 * MIB) }
  const thread = new Worker(new URL('worker.mjs', import.meta.url), { workerData: { library: dist('index'), seed: number }, env })
  const messages = []
  thread.on('message', (message) => messages.push(message))
  const ended = once(thread, 'exit')
  if (random.next() < 0.5) {
    await new Promise((resolve) => setTimeout(resolve, random.int(800)))
    await thread.terminate()
    return 'killed'
  }
  await ended
  const [result, code] = messages
  torch.manualSeed(number)
  let value = torch.randn([200, 200])
  for (let i = 0; i < 20; i++) value = value.matmul(value).softmax(1)
  if (!torch.allclose(torch.fromTransfer(result), value, { atol: 1e-6 })) throw new Error(`soak, seed ${number}: a worker has other numbers`)
  if (code !== 'TFX_OUT_OF_MEMORY') throw new Error(`soak, seed ${number}: the worker's limit did not hold: ${code}`)
  return 'finished'
}

const api = { torch, compile, config, noGrad, kernels, reset, rss: () => process.memoryUsage.rss() }
const start = performance.now()
const elapsed = () => (performance.now() - start) / 60_000
console.log(`soak: ${minutes} minutes, seed ${seed}, config.memoryLimit ${limit} MiB`)
let told = 0
const figures = await soak(api, {
  seed,
  goesOn: () => elapsed() < minutes,
  worker,
  onSample(sample) {
    if (elapsed() - told < Math.min(1, minutes / 20)) return
    told = elapsed()
    const size = (bytes) => `${(bytes / MIB).toFixed(1)} MiB`
    console.log(
      `${told.toFixed(1)} min: ${sample.count} programs, ${size(sample.bytes)} in use, ${size(sample.reserved)} reserved, process ${size(sample.rss)}`,
    )
  },
})
const wrong = growth(figures.samples, 2 * MIB, 48 * MIB)
console.log(JSON.stringify({ ...figures, samples: undefined, sampled: figures.samples.length }, null, 2))
console.log(wrong === '' ? 'no number was wrong, and memory is flat' : wrong)
process.exitCode = wrong === '' ? 0 : 1
