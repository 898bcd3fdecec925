// Small trainings into which the tests plant faults.
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { CompileOptions } from 'tensorfx/compile'
import { flightRecorder, TrainingError } from 'tensorfx/debug'
import type { FlightRecorderOptions, FlightReport } from 'tensorfx/debug'

export type Mode = 'eager' | 'compiled model' | 'compiled step'
export const MODES: readonly Mode[] = ['eager', 'compiled model', 'compiled step']

/** A network with everything that has state: normalization, dropout, weights. `between` sees the hidden values. */
export class Network extends nn.Module {
  first = new nn.Linear(4, 5)
  norm = new nn.BatchNorm1d(5)
  drop = new nn.Dropout(0.3)
  last = new nn.Linear(5, 1)
  readonly #between: (hidden: Tensor, x: Tensor) => Tensor

  constructor(between: (hidden: Tensor, x: Tensor) => Tensor = (hidden) => hidden) {
    super()
    this.#between = between
  }

  override forward(x: Tensor): Tensor {
    return this.last(this.drop(this.#between(this.norm(this.first(x)), x)))
  }
}

export interface Training {
  readonly model: Network
  readonly optimizer: optim.Optimizer
  readonly step: (x: Tensor, y: Tensor) => Tensor
}

export type MakeOptimizer = (model: Network) => optim.Optimizer

const adam: MakeOptimizer = (model) => new optim.Adam(model.parameters(), { lr: 0.01 })

/** A training in one of the ways to compile it. */
export function training(
  mode: Mode,
  between?: (hidden: Tensor, x: Tensor) => Tensor,
  makeOptimizer: MakeOptimizer = adam,
  backend?: CompileOptions['backend'],
): Training {
  const model = new Network(between)
  const options = backend === undefined ? {} : { backend }
  const run = mode === 'compiled model' ? compile(model, options) : model
  const optimizer = makeOptimizer(model)
  const step = (x: Tensor, y: Tensor): Tensor => {
    optimizer.zeroGrad()
    const loss = run(x).sub(y).square().mean()
    loss.backward()
    optimizer.step()
    return loss
  }
  return { model, optimizer, step: mode === 'compiled step' ? compile(step, options) : step }
}

/** A batch of 3 examples. */
export const batch = (): [Tensor, Tensor] => [torch.randn([3, 4]), torch.randn([3, 1])]

/** A batch with one element changed. */
export const withElement = (tensor: Tensor, index: readonly number[], value: number): Tensor => {
  const flat = [...tensor.toTypedArray()]
  flat[index.reduce((at, i, d) => at * (tensor.shape[d] ?? 1) + i, 0)] = value
  return torch.tensor(flat, { dtype: tensor.dtype }).reshape(tensor.shape)
}

/** Runs a training until the recorder reports, and returns what it reports; null if it never does. */
export function firstReport(
  { model, optimizer, step }: Training,
  batches: Iterable<[Tensor, Tensor]>,
  options: FlightRecorderOptions = {},
  between: (step: number) => void = () => {},
): FlightReport | null {
  using recorder = flightRecorder({ model, optimizer, dir: null, ...options })
  let at = 0
  for (const [x, y] of batches) {
    between(at++)
    try {
      recorder.step(step, x, y)
    } catch (error) {
      if (error instanceof TrainingError) return error.report
      throw error
    }
  }
  return null
}
