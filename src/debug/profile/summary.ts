// summary: the layers of a model with what goes through them, from one forward.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import { Module } from '../../module/index.ts'
import { checkCount, checkOptions, isCallable, valueText } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor, formatShape } from '../../tensor/index.ts'
import { moduleOf } from '../runs/observe.ts'
import type { Runnable } from '../runs/observe.ts'
import { table } from '../common/table.ts'
import { FlopCounterMode, totalOf } from './flopCounterMode.ts'
import { ModuleCalls } from './moduleCalls.ts'
import { bytesOf, countText } from './units.ts'

/** Options of {@link summary}. */
export interface SummaryOptions {
  /** How many levels of modules below the model are printed and have rows; all by default. The totals do not depend on it. */
  readonly depth?: number
}

/** One module of a model. Numbers include the modules below it. */
export interface SummaryRow {
  /** The dotted path; '' for the model. */
  readonly name: string
  /** The name of its class. */
  readonly type: string
  /** How many modules it is below the model; 0 for the model. */
  readonly depth: number
  /** How often the forward has called it. */
  readonly calls: number
  /** The shapes of the tensors that its first call returned; empty if it was not called. */
  readonly outputShapes: readonly (readonly number[])[]
  /** Elements of its parameters, each counted once, and of those that require grad. */
  readonly parameters: number
  readonly trainableParameters: number
  /** Floating-point operations of all calls: 2 for each multiply-add of products and convolutions. */
  readonly flops: number
  /** Bytes of the tensors that all calls returned. */
  readonly outputBytes: number
}

/** Sums over a model. Bytes are those of tensors as they are seen: a view counts as if it were copied. */
export interface SummaryTotals {
  readonly parameters: number
  readonly trainableParameters: number
  readonly flops: number
  readonly inputBytes: number
  readonly parameterBytes: number
  readonly bufferBytes: number
  /** Bytes of what the modules return that call no other module: roughly what training keeps for backward. */
  readonly activationBytes: number
}

/** The layers of a model; `String(summary)` is a table. */
export class Summary {
  /** The model, and the modules below it in the order in which they are registered. */
  readonly rows: readonly SummaryRow[]
  readonly totals: SummaryTotals

  constructor(rows: readonly SummaryRow[], totals: SummaryTotals) {
    this.rows = rows
    this.totals = totals
  }

  toString(): string {
    const body = this.rows.map(({ name, type, depth, calls, outputShapes, parameters, flops, outputBytes }) => [
      `${'  '.repeat(depth)}${depth === 0 ? type : `${name.split('.').at(-1)}: ${type}`}${calls > 1 ? ` (${calls} calls)` : ''}`,
      calls === 0 ? 'not called' : outputShapes.map(formatShape).join(', '),
      parameters === 0 ? '' : countText(parameters),
      flops === 0 ? '' : countText(flops),
      outputBytes === 0 ? '' : sizeText(outputBytes),
    ])
    const { totals } = this
    return [
      table(['layer', 'output', 'parameters', 'FLOPs', 'memory'], body, { right: [2, 3, 4] }),
      '',
      `parameters: ${countText(totals.parameters)}, of which ${countText(totals.trainableParameters)} are trainable`,
      `FLOPs: ${countText(totals.flops)}`,
      `memory: input ${sizeText(totals.inputBytes)}, parameters ${sizeText(totals.parameterBytes)}, buffers ${sizeText(totals.bufferBytes)}, outputs of layers ${sizeText(totals.activationBytes)}`,
    ].join('\n')
  }
}

interface Seen {
  calls: number
  shapes: readonly (readonly number[])[]
  bytes: number
  path: string
}

/**
 * Runs the forward of a model once, in evaluation mode and without gradients, and lists its modules with the shapes of their outputs, parameters, FLOPs and memory. The model's
 * training mode is restored. `input` is the tensor that the model gets, or the list of its arguments. A compiled model runs eagerly. What users of PyTorch know from torchinfo.
 *
 * @throws ArgumentError unless `model` is a Module (or one that was compiled) and the options are right.
 * @example
 * const net = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Linear(8, 2))
 * console.log(String(summary(net, torch.randn([3, 4]))))
 * summary(net, torch.randn([3, 4])).totals.flops // 2 * 3 * (4 * 8 + 8 * 2) = 288
 */
export function summary(model: Runnable, input: unknown, options: SummaryOptions = {}): Summary {
  checkCount('summary', arguments, 3)
  checkOptions('summary', options, { depth: 'number' })
  const { depth = Infinity } = options
  if (!(depth >= 0)) throw new ArgumentError(`summary: option 'depth' must be a number from 0 on, got ${valueText(depth)}.`)
  const module = moduleBehind(model)
  if (input === undefined)
    throw new ArgumentError("summary: argument 'input' is missing. Give the tensor that the model gets, or the list of its arguments.")
  const inputs: readonly unknown[] = Array.isArray(input) ? input : [input]

  const seen = new Map<Module, Seen>()
  const containers = new Set<Module>()
  const under: Module[] = []
  const counter = new FlopCounterMode()
  const moduleCalls = new ModuleCalls({
    enter({ module: entered }) {
      const caller = under.at(-1)
      if (caller !== undefined) containers.add(caller)
      under.push(entered)
    },
    leave({ module: left, path }, output) {
      under.pop()
      const tensors = tensorsIn(output)
      const before = seen.get(left)
      const shapes = before?.shapes ?? tensors.map(({ shape }) => shape)
      seen.set(left, { calls: (before?.calls ?? 0) + 1, shapes, bytes: (before?.bytes ?? 0) + bytesOf(tensors), path })
    },
  })
  inEvaluation(module, () => counter.during(() => moduleCalls.during(() => noGrad((): unknown => Reflect.apply(module, undefined, inputs)))))

  const rows = [...module.namedModules()].map(([name, below]): SummaryRow => {
    const { calls, shapes, bytes, path } = seen.get(below) ?? { calls: 0, shapes: [], bytes: 0, path: null }
    return {
      name,
      type: below.constructor.name,
      depth: name === '' ? 0 : name.split('.').length,
      calls,
      outputShapes: shapes,
      ...parametersOf(below),
      flops: path === null ? 0 : totalOf(counter.getFlopCounts().get(path)),
      outputBytes: bytes,
    }
  })
  const leaves = [...seen].filter(([called]) => !containers.has(called))
  return new Summary(
    rows.filter((row) => row.depth <= depth),
    {
      ...parametersOf(module),
      flops: counter.getTotalFlops(),
      inputBytes: bytesOf(tensorsIn(inputs)),
      parameterBytes: bytesOf(tensorsIn([...module.parameters()])),
      bufferBytes: bytesOf(tensorsIn([...module.buffers()])),
      activationBytes: leaves.reduce((sum, [, { bytes }]) => sum + bytes, 0),
    },
  )
}

function moduleBehind(model: Runnable): Module {
  const module = isCallable(model) ? moduleOf(model) : null
  if (module !== null) return module
  throw new ArgumentError(`summary: argument 'model' must be a Module, or a module that was compiled, got ${valueText(model)}.`)
}

const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)

function parametersOf(module: Module): Pick<SummaryRow, 'parameters' | 'trainableParameters'> {
  let [parameters, trainableParameters] = [0, 0]
  for (const parameter of tensorsIn([...module.parameters()])) {
    parameters += parameter.numel
    if (parameter.requiresGrad) trainableParameters += parameter.numel
  }
  return { parameters, trainableParameters }
}

/** Runs `fn` with all modules in evaluation mode, and restores the mode of each. */
function inEvaluation(module: Module, fn: () => void): void {
  const modes = [...module.modules()].map((below) => [below, below.training] as const)
  module.eval()
  try {
    fn()
  } finally {
    for (const [below, training] of modes) below.training = training
  }
}
