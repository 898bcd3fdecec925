// Runs a model and its compiled form on the same inputs, from the same random state, and compares what both come to: outputs, gradients, parameters, buffers, written
// inputs, each by name. PyTorch's torch._dynamo.debug_utils.same_two_models.
import { config } from '../../config.ts'
import { ArgumentError } from '../../errors/index.ts'
import { GraphModule } from '../../fx/index.ts'
import { Module } from '../../module/index.ts'
import { zerosLike } from '../../ops/index.ts'
import { checkArgument, checkArray, checkCallable, checkCount, checkOptions } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { castToFp64 } from '../runs/castToFp64.ts'
import { describe } from '../common/describeError.ts'
import { differenceKind } from '../closeness/differenceKind.ts'
import type { DifferenceKind } from '../closeness/differenceKind.ts'
import { contained } from '../runs/isolated.ts'
import { log } from '../common/log.ts'
import { lossOf } from '../runs/loss.ts'
import { moduleOf, observe, renamed } from '../runs/observe.ts'
import type { Runnable, Seen, Setup } from '../runs/observe.ts'
import { judgedWithRuns } from '../closeness/rounding.ts'
import { judgedSame } from '../closeness/same.ts'

/** Options of {@link sameTwoModels}. */
export interface TwoModelsOptions {
  /** Compare outputs, written inputs and buffers, without a backward pass. Default false. */
  readonly onlyFwd?: boolean
  /** If no float64 reference can be computed, nothing is judged. Default false: then the plain comparison decides, with a warning. */
  readonly requireFp64?: boolean
  /** Differences in integers and booleans do not count. Default `config.reproIgnoreNonFp`. */
  readonly ignoreNonFp?: boolean
}

/** What the comparison of two models found. */
export interface Verdict {
  /** `not judged`: something could not be run or compared; `reasons` says what. It says nothing about whether the models compute the same. */
  readonly status: 'same' | 'different' | 'not judged'
  /** What differs, and by how much; or why it was not judged. Empty for `same`. */
  readonly reasons: readonly string[]
  /** In which ways they differ; empty unless `different`. */
  readonly kinds: readonly DifferenceKind[]
  /** What was thrown, if that is why; else null. */
  readonly error: unknown
  /** Which run has thrown that; else null. */
  readonly origin: 'graph' | 'float64' | 'compiled' | null
}

/**
 * Compares a compiled model with its graph, judged against a float64 run of the graph. Nothing of the program changes. Logs nothing of what it finds.
 *
 * A function that requires no gradient where the graph does is judged by its forward: if that is right, the verdict is `not judged`.
 */
export function compareTwoModels(gm: Module, compiled: Runnable, inputs: readonly unknown[], options: TwoModelsOptions = {}): Verdict {
  const onlyFwd = options.onlyFwd ?? false
  const look: Look = (model, given, more = {}) => {
    try {
      return contained((trace) => observe(model, given, { onlyFwd, lossOf, ...more }, trace))
    } catch (error) {
      return new Failure(error)
    }
  }
  const ref = look(gm, inputs)
  if (ref instanceof Failure) return ref.verdict('graph', 'the graph fails without the backend')
  const fp64 = config.sameTwoModelsUseFp64 ? float64(gm, inputs, look) : null
  if (fp64 instanceof Failure) {
    const message = 'Could not generate fp64 outputs'
    if (options.requireFp64 === true) {
      const error = new ArgumentError(`${message}, workaround with config.sameTwoModelsUseFp64 = false`, { cause: fp64.error })
      return new Failure(error).verdict('float64', message)
    }
    log.warning(message)
  }
  const res = look(compiled, inputs, { like: { module: gm, buffers: ref.buffers } })
  if (res instanceof Failure) return res.verdict('compiled', 'the compiled model fails')
  const { seen, missing } = renamed(res, ref)
  const runs: Runs = {
    ...{ ref, res: seen, fp64: fp64 instanceof Failure ? null : fp64, missing },
    ...{ isOwn: moduleOf(compiled) !== null, onlyFwd, ignoreNonFp: options.ignoreNonFp ?? config.reproIgnoreNonFp },
  }
  // The reference may be exact by luck: what rounding does to it is seen only with other inputs.
  const moved = (seed: number): Seen | null => {
    const other = look(gm, inputs, { moved: seed })
    return other instanceof Failure ? null : other
  }
  return judgedWithRuns(
    moved,
    (others) => compared(runs, others),
    ({ status }) => status !== 'different',
  )
}

type Look = (model: Runnable, given: readonly unknown[], more?: Partial<Setup>) => Seen | Failure

/** What kept a run from ending. */
class Failure {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }

  verdict(origin: Verdict['origin'], what: string): Verdict {
    return { status: 'not judged', reasons: [`${what}: ${describe(this.error)}`], kinds: [], error: this.error, origin }
  }
}

function float64(gm: Module, inputs: readonly unknown[], look: Look): Seen | Failure {
  if (!(gm instanceof GraphModule)) return new Failure(new ArgumentError('a Module that has no graph cannot be run in float64.'))
  try {
    const wide = castToFp64(gm, inputs)
    return look(wide.gm, wide.inputs)
  } catch (error) {
    return new Failure(error)
  }
}

interface Runs {
  readonly ref: Seen
  readonly res: Seen
  readonly fp64: Seen | null
  /** What the compiled model has no counterpart of. */
  readonly missing: readonly string[]
  /** Whether the compiled model has parameters of its own, or those of its module: what has no gradient has a zero one then. */
  readonly isOwn: boolean
  readonly onlyFwd: boolean
  readonly ignoreNonFp: boolean
}

function compared({ ref, res, fp64, missing, isOwn, onlyFwd, ignoreNonFp }: Runs, others: readonly Seen[]): Verdict {
  const hasNoBackward = !onlyFwd && ref.loss !== null && res.loss === null && !isOwn
  const parts = onlyFwd || hasNoBackward ? [forward] : [forward, backward]
  const differ = parts.flatMap((part) =>
    differences(part(ref), part(res), fp64 === null ? new Map<string, unknown>() : part(fp64), others.map(part), ignoreNonFp),
  )
  if (differ.length > 0) {
    const kinds = [...new Set(differ.map(({ kind }) => kind))]
    return { status: 'different', reasons: differ.map(({ reason }) => reason), kinds, error: null, origin: null }
  }
  const noBackward = 'the outputs of the compiled function require no gradient, and those of the graph do, so its backward was not judged'
  const open = [...(hasNoBackward ? [noBackward] : []), ...missing]
  return { status: open.length === 0 ? 'same' : 'not judged', reasons: open, kinds: [], error: null, origin: null }
}

type Values = ReadonlyMap<string, unknown>

/** What a forward pass shows, by name. */
const forward = ({ output, buffers, parameters, inputs }: Seen): Values =>
  new Map([['output', output], ...named('buffer ', buffers), ...named('parameter ', parameters), ...named('', inputs)])

/** What a backward pass adds. The loss is one of the output. */
const backward = ({ gradients, inputGradients }: Seen): Values =>
  new Map([...named('gradient of ', gradients), ...named('gradient of ', inputGradients)])

const named = (what: string, values: Values): [string, unknown][] => [...values].map(([name, value]) => [what + name, value])

/** What differs, except for what the result does not have at all. A gradient that is missing is zero. */
function differences(
  ref: Values,
  res: Values,
  fp64: Values,
  others: readonly Values[],
  ignoreNonFp: boolean,
): { readonly reason: string; readonly kind: DifferenceKind }[] {
  return [...ref].flatMap(([name, value]) => {
    if (!res.has(name)) return []
    const reasons: string[] = []
    const logError = (reason: string): void => void reasons.push(reason)
    const [want, got] = orZero(value, res.get(name))
    const runs = others.map((other) => other.get(name) ?? null)
    const judged = (options: Parameters<typeof judgedSame>[3]): boolean => judgedSame(want, got, fp64.get(name) ?? null, options, runs)
    if (judged({ tol: config.reproTolerance, ignoreNonFp, logError })) return []
    const differsInFloats = (): boolean => !judged({ tol: config.reproTolerance, ignoreNonFp: true, logError: () => {} })
    return [{ reason: `${reasons.join('; ')} (${name})`, kind: differenceKind(name, want, got, differsInFloats) }]
  })
}

function orZero(a: unknown, b: unknown): readonly [unknown, unknown] {
  if (a === null && b instanceof Tensor) return [zerosLike(b), b]
  if (b === null && a instanceof Tensor) return [a, zerosLike(a)]
  return [a, b]
}

/**
 * Whether the compiled model computes what the graph computes, judged against a float64 run of the graph: true only if that could be judged. What differs, and what kept
 * the models from being judged, is logged as an error. Nothing of the program changes. PyTorch's `same_two_models`.
 *
 * @throws ArgumentError for bad arguments, and with `requireFp64` if there is no float64 reference; and what the graph throws without the backend.
 */
export function sameTwoModels(gm: Module, compiled: Runnable, inputs: readonly unknown[], options: TwoModelsOptions = {}): boolean {
  checkCount('sameTwoModels', arguments, 4)
  checkArgument(gm instanceof Module, 'sameTwoModels', 'gm', 'a GraphModule or another Module', gm)
  checkCallable('sameTwoModels', 'compiled', compiled)
  checkArray('sameTwoModels', 'inputs', inputs)
  checkOptions('sameTwoModels', options, { onlyFwd: 'boolean', requireFp64: 'boolean', ignoreNonFp: 'boolean' })
  const { status, reasons, error, origin } = compareTwoModels(gm, compiled, inputs, options)
  if (origin === 'graph' || origin === 'float64') throw error
  for (const reason of reasons) log.error(status === 'not judged' ? `The models were not compared: ${reason}` : reason)
  return status === 'same'
}
