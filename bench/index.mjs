// npm run bench: compiled against eager, the overhead of one operator, of calling a module and of one replay check, and sgemm against the machine's limit. Ratios, in one run.
import './oneThread.mjs'
import { compile, nn, torch } from 'tensorfx'
import { BATCH, loadDigits, makeTraining, shuffled } from '../examples/demo/model.mjs'
import { sideBySide, sideBySideInTurns } from '../examples/demo/terminal.mjs'
import { progressOf } from '../dist/cli/progress.js'
import { measureGemm } from './gemm.mjs'

/** What is measured, on standard error: a bar on a terminal. */
const progress = progressOf(process.stderr, process.env)
let measured = 0
const measuring = (text) => progress.report({ task: 'bench', done: measured++, total: 8, text })
/** Prints a result. */
const print = (line) => {
  progress.end()
  console.log(line)
}

const verdict = (ok) => (ok ? 'meets' : 'MISSES')
const data = await loadDigits()
const [images, labels] = data.batch(shuffled(data.trainCount, 1).slice(0, BATCH))

measuring('training step')
// Whole training steps.
const eager = makeTraining(1)
const twin = makeTraining(1)
const compiledStep = compile(twin.step)
const steps = [() => eager.step(images, labels), () => compiledStep(images, labels)]
// The engine compiles hot functions in the background for some hundred rounds; times before that are times of its baseline code.
await sideBySideInTurns(steps, 500)
report('training step', ...(await sideBySideInTurns(steps, 500)))
measuring('training step in a synchronous loop')
// And in a synchronous loop, where memory comes back only when the heap looks for it.
report('  synchronous loop', ...sideBySide(steps, 300))

measuring('inference')
// Inference.
eager.model.eval()
const compiledModel = compile(eager.model)
const [eagerRun, fastRun] = torch.noGrad(() => sideBySide([() => eager.model(images), () => compiledModel(images)], 600))
report(`inference, batch ${BATCH}`, eagerRun, fastRun)

function report(what, slow, fast) {
  const ratio = slow / fast
  print(
    `${what.padEnd(24)} eager ${(slow * 1000).toFixed(0).padStart(6)} us   compiled ${(fast * 1000).toFixed(0).padStart(6)} us   ${ratio.toFixed(2)}x (${verdict(ratio >= 2)} 2x)`,
  )
}

measuring('add of 16 floats')
// One eager addition of 16 floats.
const a = torch.ones([16])
const b = torch.ones([16])
const additions = 20_000
const [addMs] = torch.noGrad(() =>
  sideBySide(
    [
      () => {
        for (let i = 0; i < additions; i++) a.add(b)
      },
    ],
    30,
  ),
)
const addNs = (addMs * 1e6) / additions
print(`${'add of 16 floats, eager'.padEnd(24)} ${addNs.toFixed(0)} ns (${verdict(addNs <= 2000)} 2000 ns)`)

measuring('module calls')
// A module called directly, and with its method.
class Same extends nn.Module {
  forward(x) {
    return x
  }
}
const modules = Array.from({ length: 8 }, () => new Same())
const calls = 200_000
const [callMs, directMs] = sideBySide(
  [
    () => {
      for (let i = 0; i < calls; i++) modules[i & 7].call(a)
    },
    () => {
      for (let i = 0; i < calls; i++) modules[i & 7](a)
    },
  ],
  30,
)
const [callNs, directNs] = [callMs, directMs].map((ms) => (ms * 1e6) / calls)
print(
  `${'module called directly'.padEnd(24)} ${directNs.toFixed(0)} ns, with call ${callNs.toFixed(0)} ns: ${(directNs / callNs).toFixed(2)}x (${verdict(directNs - callNs <= 20)} 20 ns more)`,
)

measuring('replay check')
// One replay check: a chain of additions whose compiled form does almost nothing.
const length = 1000
const chain = (x) => {
  for (let i = 0; i < length; i++) x = x.add(b)
  return x
}
const fastChain = compile(chain, { backend: (_gm, inputs) => () => [inputs[0]] })
const [chainMs] = torch.noGrad(() => sideBySide([() => fastChain(a)], 200))
const checkNs = (chainMs * 1e6) / length
print(`${'replay check'.padEnd(24)} ${checkNs.toFixed(0)} ns an operator (${verdict(checkNs <= 150)} 150 ns)`)

measuring('compiling 8000 operators')
// Compiling long programs: the second of two, since the compiler itself is compiled during the first.
const count = 8000
const longProgram = (x) => {
  for (let i = 0; i < count; i++) x = i % 3 === 0 ? x.add(1) : i % 3 === 1 ? x.mul(0.5) : x.tanh()
  return x
}
function firstCall(makeProgram, x) {
  const times = [0, 1].map(() => {
    const program = makeProgram()
    const start = performance.now()
    program(x)
    return performance.now() - start
  })
  return times[1] / count
}
const forwardMs = firstCall(() => {
  const program = compile(longProgram)
  return (x) => program(x).toArray()
}, a)
const backwardMs = firstCall(
  () => {
    const program = compile((x) => longProgram(x).sum())
    return (x) => {
      program(x).backward()
      return x.grad.toArray()
    }
  },
  torch.ones([16]).requiresGrad_(),
)
print(
  `${'compile 8000 operators'.padEnd(24)} ${forwardMs.toFixed(3)} ms each (${verdict(forwardMs <= 0.15)} 0.15 ms), with backward ${backwardMs.toFixed(3)} ms (${verdict(backwardMs <= 0.4)} 0.4 ms)`,
)

measuring('sgemm')
// Matrix product, one thread.
const gemm = measureGemm()
const share = gemm.gflops / gemm.limit
print(
  `${'sgemm 512'.padEnd(24)} ${gemm.gflops.toFixed(1)} of ${gemm.limit.toFixed(1)} GFLOP/s: ${(100 * share).toFixed(0)}% of the 128-bit multiply-add limit (${verdict(share >= 0.85)} 85%)`,
)
