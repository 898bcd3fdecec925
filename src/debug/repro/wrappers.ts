// The debugger around backends: watches each compile (after dynamo), or each forward and backward graph (after aot), and writes a script if one fails,
// crashes or computes wrong numbers. `config.reproAfter` and `config.reproLevel` say where and how much.
//   level 1: on failure write the graph as repro.mjs        level 3: write the launcher before every run (for crashes that kill the process)
//   level 2: on failure write minifier_launcher.mjs          level 4: also judge every call (callCheck.ts), and write the launcher if it is wrong; after aot, how graphs are split (splitCheck.ts)
// The program computes what it computes without: compiled code is called once with the program's inputs, and everything else runs on copies.
import { checkCount } from '../../protocol/index.ts'
import { splitting } from '../../aot/function/compileJoint.ts'
import { noGrad } from '../../autograd/index.ts'
import { config } from '../../config.ts'
import { interceptBackends, runnable, resultsOf } from '../../dynamo/index.ts'
import type { Backend, BackendCode } from '../../dynamo/index.ts'
import { GraphModule } from '../../fx/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { CallCheck } from '../judge/callCheck.ts'
import type { Compiled } from '../judge/callCheck.ts'
import { Dump } from './dump.ts'
import type { Where } from './dump.ts'
import { CallHistory } from '../runs/history.ts'
import { contained, isolated } from '../runs/isolated.ts'
import { watchSplit } from '../judge/splitCheck.ts'

/** Installs the debugger around the compiler; the composition root calls it. */
export function installDebug(): void {
  interceptBackends('dynamo', wrapBackendDebug)
  interceptBackends('aot', wrapCompilerDebug)
  splitting.watch = watchSplit
}

/** Watches a backend as dynamo calls it. PyTorch's WrapBackendDebug. */
export function wrapBackendDebug(backend: Backend, name: string): Backend {
  checkCount('wrapBackendDebug', arguments, 2)
  return watch(backend, name, 'dynamo')
}

/** Watches a compiler of forward or backward graphs. PyTorch's wrap_compiler_debug. */
export function wrapCompilerDebug(compiler: Backend, name: string): Backend {
  checkCount('wrapCompilerDebug', arguments, 2)
  return watch(compiler, name, 'aot')
}

/** The forward half of a joint graph that is watched as a whole. */
interface ForwardHalf {
  readonly gm: GraphModule
  /** What its latest call returned: the outputs, and what it saved for the backward. */
  outputs: readonly unknown[]
}

/** A watched graph while its backend compiles or its code runs. */
interface Frame {
  half: ForwardHalf | null
}

/** What is compiled inside of a watched graph belongs to it, and is not watched by itself. */
let inside: Frame | null = null

function within<T>(frame: Frame, fn: () => T): T {
  const before = inside
  inside = frame
  try {
    return fn()
  } finally {
    inside = before
  }
}

function watch(backend: Backend, name: string, where: Where): Backend {
  const watched: Backend = (gm, exampleInputs) => {
    if (inside !== null)
      return where === 'aot' && gm.meta['half'] === 'forward' ? observed(backend, gm, exampleInputs, inside) : backend(gm, exampleInputs)
    // After dynamo, backward graphs are watched too: they are compiled when they first run, outside of what is watched as a whole.
    const { reproAfter } = config
    if (reproAfter === null || (reproAfter === 'aot' && where === 'dynamo')) return backend(gm, exampleInputs)
    return watchGraph(backend, name, reproAfter, gm, exampleInputs)
  }
  return Object.assign(watched, { backendName: name })
}

/** Compiles a forward half, and notes what its calls return. */
function observed(backend: Backend, gm: GraphModule, exampleInputs: readonly unknown[], frame: Frame): BackendCode {
  const half: ForwardHalf = { gm: gm.deepCopy({ shareTensors: true }), outputs: [] }
  frame.half = half
  const code = backend(gm, exampleInputs)
  const compiled = runnable(code)
  return withReports(code, (...inputs) => {
    const outputs = compiled(...inputs)
    half.outputs = resultsOf(outputs)
    return outputs
  })
}

/** A function in place of compiled code, with what the code reports of itself. */
function withReports(code: BackendCode, run: Compiled): BackendCode {
  if (code instanceof GraphModule) return run
  const { kernels, writtenInPlace } = code
  return Object.assign(run, kernels === undefined ? {} : { kernels }, writtenInPlace === undefined ? {} : { writtenInPlace })
}

function watchGraph(backend: Backend, name: string, where: Where, gm: GraphModule, exampleInputs: readonly unknown[]): BackendCode {
  // Scripts are written from a copy, and calls judged by it, since the backend may change the graph.
  const original = gm.deepCopy({ shareTensors: true })
  const { reproLevel: level, reproForwardOnly } = config
  const dump = new Dump(original, name, where)
  const frame: Frame = { half: null }
  if (level === 3 && realInputs(exampleInputs)) dump.begin('compile', [exampleInputs])
  let code: BackendCode
  let compiled: Compiled
  try {
    code = within(frame, () => backend(gm, exampleInputs))
    const run = runnable(code)
    compiled = (...inputs) => within(frame, () => run(...inputs))
  } catch (error) {
    dump.isDifferentiated = frame.half !== null
    throw dump.failure(error, [exampleInputs])
  }
  dump.isDifferentiated = frame.half !== null
  if (level === 3) dump.end('compile', 'ended')
  const isChecked = level === 4 && !(reproForwardOnly && original.meta['half'] === 'backward')
  const check = isChecked ? new CallCheck(original, compiled, dump.unchecked) : null
  const saved = check === null || frame.half === null ? null : new SavedCheck(frame.half, compiled, new Dump(frame.half.gm, name, where))
  const history = new CallHistory(config.reproHistory)
  return withReports(code, (...inputs) => {
    const before = history.add(inputs)
    if (level === 3) dump.begin('run', history.calls)
    check?.begin()
    let outputs: unknown
    try {
      outputs = compiled(...inputs)
    } catch (error) {
      if (!failsOnEager(original, before)) throw dump.failure(error, history.calls)
      if (level === 3) dump.end('run', 'ended')
      throw error
    }
    // To judge the call, the code is run again, which saves anew.
    const kept = saved?.take() ?? []
    const finding = check?.judge(before, inputs, outputs, kept) ?? null
    if (finding !== null) throw dump.wrong(finding, history.calls)
    saved?.judge(before, inputs, kept, history)
    if (level === 3) dump.end('run', 'ended')
    return outputs
  })
}

/** What a forward half saves for its backward: nothing else looks at it if the backward is right on what it gets. */
class SavedCheck {
  readonly #half: ForwardHalf
  readonly #check: CallCheck
  readonly #dump: Dump

  constructor(half: ForwardHalf, compiled: Compiled, dump: Dump) {
    this.#half = half
    this.#dump = dump
    this.#check = new CallCheck(half.gm, compiled, dump.unchecked)
  }

  /** What the latest call saved. */
  take(): readonly unknown[] {
    const { outputs } = this.#half
    this.#half.outputs = []
    return outputs
  }

  /** Throws AccuracyError if a call saved wrong values. */
  judge(before: readonly unknown[], inputs: readonly unknown[], kept: readonly unknown[], history: CallHistory): void {
    // The tape holds what a backward needs.
    this.take()
    const finding = this.#check.judgeNumbers(before, inputs, kept)
    if (finding !== null) throw this.#dump.wrong(finding, history.calls)
  }
}

const realInputs = (inputs: readonly unknown[]): boolean => inputs.every((i) => !(i instanceof Tensor) || !i.isFake)

/** Whether the graph fails by itself on these inputs: then the failure is the program's, and no backend's. */
function failsOnEager(gm: GraphModule, inputs: readonly unknown[]): boolean {
  try {
    contained(() => {
      const copy = isolated(gm, inputs)
      return noGrad(() => copy.model.forward(...copy.inputs))
    })
    return false
  } catch {
    return true
  }
}
