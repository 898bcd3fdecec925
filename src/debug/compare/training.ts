// compareTraining: a training step on several backends. The graphs of forward, backward and optimizer are recorded as compile makes them, each with its real inputs, while
// eager kernels compute the training. Every backend then runs every recorded graph on copies, so that each call starts from the state of the reference: what differs first is the
// fault, in whichever graph it is, and nothing inherits it.
import { compile } from '../../dynamo/index.ts'
import type { Backend, Compiled, CompiledModule } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { originOf } from '../../fx/graph/origin.ts'
import { Module } from '../../module/index.ts'
import { checkArgument, checkArray, checkCallable, checkCount, checkOptions } from '../../protocol/index.ts'
import { sourceLine } from '../../provenance/index.ts'
import { getRngState, manualSeed, setRngState, Tensor } from '../../tensor/index.ts'
import type { GeneratorState } from '../../tensor/index.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import { candidatesOf } from './backends.ts'
import type { Candidate, ComparedBackend } from './backends.ts'
import { comparedOn } from './compared.ts'
import { Comparing } from './comparing.ts'
import { culpritAt, FORWARD } from './culprit.ts'
import type { Culprit, Status } from './culprit.ts'
import { taskOf } from './reference.ts'
import type { ReferenceKind } from './reference.ts'
import { confirmed, tried } from './trial.ts'

/** What part of a training step a node computes. */
export type TrainingPhase = 'forward' | 'backward' | 'optimizer'

/** Options of {@link compareTraining}. */
export interface CompareTrainingOptions {
  /** As for `compareBackends`. Functions get the graphs that compile would give them: forward and backward graphs apart where the backward runs outside. */
  readonly backends: readonly ComparedBackend[]
  /** How many steps to run. Default 2: the first one has no state in its optimizer. */
  readonly steps?: number
  /** The largest error; see `compareBackends`. Default 1e-4. */
  readonly tol?: number
  /** See `compareBackends`. Default `'float64'`. */
  readonly reference?: ReferenceKind
  /** The seed of weights, batches and random operators. Default 0. The generator is put back afterwards. */
  readonly seed?: number
}

/** What `makeStep` compiles its functions and modules with, instead of `compile`. */
export interface CompileForTraining {
  <M extends Module>(module: M): CompiledModule<M>
  <F extends (...args: never[]) => unknown>(fn: F): Compiled<F>
}

/** Builds a fresh model and optimizer, and returns a function that takes one training step. */
export type MakeStep = (compile: CompileForTraining) => TrainingStep | Promise<TrainingStep>

/** Takes one step, counted from 0. */
export type TrainingStep = (step: number) => unknown

/** Why a backend is not right. */
export interface TrainingCulprit extends Culprit {
  /** The step, counted from 0. */
  readonly step: number
  readonly phase: TrainingPhase
  /** The graph that the nodes are in, and what it got. */
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  /** `train.ts:12`: the line of the program that the first node comes from; null if that is not known. */
  readonly line: string | null
}

/** The result of `compareTraining`. `String(result)` has a line for each backend. */
export class TrainingComparison {
  /** Why a backend is not right, by backend; null if it is right. */
  readonly culprits: ReadonlyMap<string, TrainingCulprit | null>
  /** How many graphs ran in each step. */
  readonly graphs: readonly number[]

  constructor(culprits: ReadonlyMap<string, TrainingCulprit | null>, graphs: readonly number[]) {
    this.culprits = culprits
    this.graphs = graphs
  }

  /** What is said of each backend. */
  get statuses(): ReadonlyMap<string, Status> {
    return new Map([...this.culprits].map(([name, culprit]) => [name, culprit?.kind ?? 'right']))
  }

  /** The culprit of the first backend that has one. */
  get first(): (TrainingCulprit & { readonly backend: string }) | null {
    for (const [backend, culprit] of this.culprits) if (culprit !== null) return { ...culprit, backend }
    return null
  }

  toString(): string {
    return [...this.culprits]
      .map(([name, culprit]) => `${name}: ${culprit === null ? `right in ${this.graphs.length} steps` : culpritText(culprit)}`)
      .join('\n')
  }
}

function culpritText({ kind, rule, nodes, step, phase, line, error, reason, gm }: TrainingCulprit): string {
  const what =
    rule ??
    (kind === 'wrong' ? `differs (${Number.isFinite(error) ? `error ${error.toExponential(1)}` : (reason ?? 'another NaN or infinity')})` : kind)
  const names = nodes.map((node) => `'${node.name}'`).join(', ')
  const why = reason === null || kind === 'wrong' ? '' : `: ${reason}`
  return `step ${step}, ${phase}: ${names} ${what}${why}, in ${gm.className}${line === null ? '' : ` (${line})`}`
}

/** One call of one graph. */
interface Call {
  readonly step: number
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  readonly state: GeneratorState
}

/**
 * Runs a training on eager kernels and records every graph that compile makes of it (forward, backward, optimizer, parts between graph breaks) with its inputs; runs these graphs on
 * the backends, and compares. The first node that is not right is named, with its step, its phase and its line. Each call gets the inputs of the reference, so later steps
 * inherit nothing.
 *
 *     const result = await compareTraining((compile) => {
 *       const model = new Net()
 *       const optimizer = new optim.Adam(model.parameters())
 *       const forward = compile((x, y) => F.mseLoss(model.call(x), y))
 *       return () => { optimizer.zeroGrad(); forward(x, y).backward(); optimizer.step() }
 *     }, { backends: ['inductor', mine] })
 *     console.log(String(result))
 *
 * @throws ArgumentError for bad options, and if nothing was compiled; what the training itself throws.
 */
export async function compareTraining(makeStep: MakeStep, options: CompareTrainingOptions): Promise<TrainingComparison> {
  checkCount('compareTraining', arguments, 2)
  checkCallable('compareTraining', 'makeStep', makeStep)
  checkOptions('compareTraining', options, { backends: true, steps: 'number', tol: 'number', reference: true, seed: 'number' })
  const { backends, steps = 2, tol = 1e-4, reference = 'float64', seed = 0 } = options
  checkArray('compareTraining', 'options.backends', backends)
  if (backends.length === 0) throw new ArgumentError("compareTraining: options.backends is empty; name at least one, e.g. ['inductor'].")
  checkArgument(Number.isInteger(steps) && steps > 0, 'compareTraining', 'options.steps', 'a whole number of at least 1', steps)
  checkArgument(typeof tol === 'number' && tol > 0, 'compareTraining', 'options.tol', 'a positive number', tol)
  checkArgument(reference === 'float64' || reference === 'eager', 'compareTraining', 'options.reference', "'float64' or 'eager'", reference)
  checkArgument(Number.isSafeInteger(seed) && seed >= 0, 'compareTraining', 'options.seed', 'a whole number', seed)
  const candidates = await candidatesOf(backends, true)
  const state = getRngState()
  try {
    const calls = await recorded(makeStep, steps, seed)
    if (calls.length === 0)
      throw new ArgumentError(
        'compareTraining: the training compiles nothing: makeStep must compile its functions or modules with the `compile` that it is given.',
      )
    const culprits = new Map<string, TrainingCulprit | null>()
    for (const one of candidates) {
      culprits.set(one.name, null)
      for (const call of calls) {
        // oxlint-disable-next-line no-await-in-loop -- the first call that is wrong ends the search
        const culprit = await culpritOf(one, call, { tol, reference })
        if (culprit === null) continue
        culprits.set(one.name, culprit)
        break
      }
    }
    return new TrainingComparison(
      culprits,
      Array.from({ length: steps }, (_, step) => calls.filter((call) => call.step === step).length),
    )
  } finally {
    setRngState(state)
  }
}

/** Runs the training, and notes what every graph gets. */
async function recorded(makeStep: MakeStep, steps: number, seed: number): Promise<readonly Call[]> {
  const calls: Call[] = []
  let step = 0
  const backend: Backend = (gm) => {
    // The caller writes results back to inputs; a backend is not asked to.
    const own = gm.deepCopy()
    delete own.meta['writeBacks']
    return (...values: readonly unknown[]) => {
      calls.push({ step, gm: own, inputs: isolatedInputs(values), state: getRngState() })
      return gm.forward(...values)
    }
  }
  function compileHere<M extends Module>(module: M): CompiledModule<M>
  function compileHere<F extends (...args: never[]) => unknown>(fn: F): Compiled<F>
  function compileHere(target: Module | ((...args: never[]) => unknown)): unknown {
    return target instanceof Module ? compile(target, { backend }) : compile(target, { backend })
  }
  manualSeed(seed)
  const run = await makeStep(compileHere)
  checkCallable('compareTraining', 'what makeStep returns', run)
  for (; step < steps; step++) {
    // oxlint-disable-next-line no-await-in-loop -- one step after the other
    await run(step)
  }
  return calls
}

/** Why a backend is not right for a call; null if it is. */
async function culpritOf(
  one: Candidate,
  call: Call,
  settings: { readonly tol: number; readonly reference: ReferenceKind },
): Promise<TrainingCulprit | null> {
  const { gm, inputs, state, step } = call
  const task = taskOf(gm, inputs, settings.reference, state)
  const measured = await confirmed(one, task, settings.tol, await tried(one, task, settings.tol))
  if (measured.status === 'ok') return null
  setRngState(state)
  // The graph as a whole is not right: which node?
  const found = await new Comparing(one, comparedOn(gm, inputs, 0, [], settings)).culprit(true, [])
  const whole = culpritAt([gm.graph.outputNode()], measured, { found: 'in the graph', set: 0, ...FORWARD })
  const culprit = found ?? whole
  const [node] = culprit.nodes
  const phase = phaseOf(call, node)
  const frame = node === undefined ? null : originOf(node)
  const half = phase === 'backward' ? 'backward' : 'forward'
  return { ...culprit, half, step, phase, gm, inputs, line: frame === null ? null : `${frame.file}:${frame.line}` }
}

/** A graph of its own for the backward is named so; in a graph of a whole step, the call in the program tells. */
function phaseOf({ gm, inputs }: Call, node: Node | undefined): TrainingPhase {
  if (/_backward(_\d+)*$/.test(gm.className)) return 'backward'
  if (gm.className.endsWith('_forward')) return 'forward'
  const frame = node === undefined ? null : originOf(node)
  const code = frame === null ? '' : (sourceLine(frame)?.slice(frame.column - 1) ?? '')
  if (/^(backward|grad)\b/.test(code)) return 'backward'
  if (/^step\b/.test(code)) return 'optimizer'
  // A graph of parameters and gradients, which comes from no line of the program.
  const hasLines = [...gm.graph.nodes].some((one) => originOf(one) !== null)
  return !hasLines && inputs.some((input) => input instanceof Tensor && input.isParameter) ? 'optimizer' : 'forward'
}
