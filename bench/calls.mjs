// What a call costs beside its kernels: small programs eager, compiled and with skipReplay, in turns in one process. Prints microseconds (the lower quartile of 60 batches) and ratios to eager.
import './oneThread.mjs'
import { compile, torch } from 'tensorfx'

const { functional: F } = torch.nn
const BATCHES = 60
/** About what a batch takes, in milliseconds. */
const BATCH = 3

function chain(x) {
  let y = x
  for (let i = 0; i < 100; i++) y = i % 2 === 0 ? y.add(0.5) : y.mul(1.01)
  return y
}

const rows = [
  ['add of 16', (x, y) => x.add(y), [torch.randn([16]), torch.randn([16])]],
  ['add and relu of 16', (x, y) => x.add(y).relu(), [torch.randn([16]), torch.randn([16])]],
  ['chain of 100, of 16', chain, [torch.randn([16])]],
  ['softmax 4x16', (x) => x.softmax(-1), [torch.randn([4, 16])]],
  ['linear 8x64x64 and relu', (x, w) => F.relu(F.linear(x, w)), [torch.randn([8, 64]), torch.randn([64, 64])]],
]

const time = (call, args, times) => {
  const start = performance.now()
  for (let i = 0; i < times; i++) call(...args)
  return performance.now() - start
}

const quartile = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? NaN

console.log('| program | eager, µs | compiled | skipReplay |\n| --- | ---: | ---: | ---: |')
for (const [name, fn, args] of rows) {
  const ways = [fn, compile(fn), compile(fn, { skipReplay: true })]
  for (const call of ways) time(call, args, 3000)
  const times = Math.max(10, Math.round((BATCH * 1000) / time(fn, args, 1000)))
  const taken = ways.map(() => [])
  for (let batch = 0; batch < BATCHES; batch++) for (const [i, call] of ways.entries()) taken[i].push((1000 * time(call, args, times)) / times)
  const [eager, ...others] = taken.map(quartile)
  console.log(`| ${name} | ${eager.toFixed(2)} | ${others.map((one) => `${one.toFixed(2)} (${(one / eager).toFixed(2)}x)`).join(' | ')} |`)
}
