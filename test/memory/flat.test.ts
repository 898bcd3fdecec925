// 1,000 steps of training have no more in use than 200 had, in tensors, on the heap and in objects of JavaScript, and need no more room than a few steps.
import { expect, onTestFinished, test } from 'vitest'
import { Tensor, compile, config, nn, optim, torch } from 'tensorfx'
import { checkpoint } from 'tensorfx/autograd'
import { nodeCollector } from '../../src/kernels/memory/collector.ts'
import { turn } from '../helpers/rotation.ts'

const MIB = 2 ** 20
const collector = nodeCollector()

interface Figures {
  readonly allocated: number
  readonly reserved: number
  readonly spilled: number
  readonly pieces: number
  /** What objects of JavaScript take. */
  readonly objects: number
}

/** What is in use once everything that is dead was found. */
async function figures(): Promise<Figures> {
  // A tensor that a WeakRef was read for lives until the task has ended.
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setTimeout(resolve))
    torch.memory.emptyCache()
  }
  collector?.collect()
  const { allocated, heap, spill, counts } = torch.memory.stats()
  return { allocated, reserved: heap.reserved, spilled: spill.allocated, pieces: counts.current, objects: process.memoryUsage().heapUsed }
}

const ROWS = 8

interface Training {
  readonly model: nn.Module & ((x: Tensor) => Tensor)
  readonly optimizer: optim.Optimizer
}

function training(make: (parameters: Iterable<Tensor>) => optim.Optimizer): Training {
  torch.manualSeed(1)
  const model = new nn.Sequential(new nn.Linear(16, 32), new nn.BatchNorm1d(32), new nn.GELU(), new nn.Dropout(0.1), new nn.Linear(32, 4))
  return { model, optimizer: make([...model.parameters()]) }
}

const adam = (parameters: Iterable<Tensor>): optim.Optimizer => new optim.Adam(parameters, { lr: 1e-3 })
const lossOf = (output: Tensor, target: Tensor): Tensor => nn.functional.mseLoss(output, target)

/** One step of training, given the forward. */
function stepOf({ optimizer }: Training, forward: (x: Tensor, target: Tensor) => Tensor): (x: Tensor, target: Tensor) => Tensor {
  return (x, target) => {
    optimizer.zeroGrad()
    const loss = forward(x, target)
    loss.backward()
    optimizer.step()
    return loss.detach()
  }
}

type Step = (x: Tensor, target: Tensor) => unknown

const steps: Readonly<Record<string, () => Step>> = {
  eager: () => {
    const given = training(adam)
    return stepOf(given, (x, target) => lossOf(given.model(x), target))
  },
  'with a schedule, clipped gradients, a hook and a checkpoint': () => {
    const given = training((parameters) => new optim.SGD(parameters, { lr: 0.01, momentum: 0.9 }))
    const schedule = new optim.CosineAnnealingLR(given.optimizer, 100)
    return (x, target) => {
      given.optimizer.zeroGrad()
      const output = checkpoint((input: Tensor) => given.model(input), x)
      const hook = output.registerHook((gradient) => gradient.mul(0.5))
      lossOf(output, target).backward()
      hook.remove()
      nn.utils.clipGradNorm_(given.model.parameters(), 1)
      given.optimizer.step()
      schedule.step()
    }
  },
  'with the forward compiled': () => {
    const given = training(adam)
    return stepOf(
      given,
      compile((x: Tensor, target: Tensor) => lossOf(given.model(x), target)),
    )
  },
  'with all of it compiled': () => {
    const given = training(adam)
    return compile(stepOf(given, (x, target) => lossOf(given.model(x), target)))
  },
  'with all of it compiled, and a graph break in each step': () => {
    const given = training(adam)
    return compile(
      stepOf(given, (x, target) => {
        const output = given.model(x)
        return lossOf(output.sum().item() > -1e9 ? output : output.neg(), target)
      }),
    )
  },
}

/** What is in use after 200 steps, and after 800 more that have 1 MiB for their tensors: some 20 steps of them. */
async function afterSteps(step: Step): Promise<readonly [Figures, Figures]> {
  const run = (count: number): void => {
    for (let i = 0; i < count; i++) step(torch.randn([ROWS, 16]), torch.randn([ROWS, 4]))
  }
  run(200)
  const first = await figures()
  const given = config.memoryLimit
  onTestFinished(() => {
    config.memoryLimit = given
  })
  config.memoryLimit = first.allocated + MIB
  torch.memory.resetPeakMemoryStats()
  run(800)
  expect(torch.memory.maxMemoryAllocated()).toBeLessThanOrEqual(first.allocated + MIB)
  return [first, await figures()]
}

/** Bytes of JavaScript's objects that a step may leave; the engine keeps some for itself. */
const OBJECTS = 2000

test.each(turn(Object.entries(steps)))(
  '1,000 training steps are flat: %s',
  async (_, make) => {
    const [{ objects: before, ...first }, { objects: after, ...last }] = await afterSteps(make())
    expect(last).toEqual(first)
    expect(after - before).toBeLessThan(800 * OBJECTS)
  },
  60_000,
)

test('steps whose losses are kept, with what is left of their history, are not flat', async () => {
  const given = training(adam)
  const kept: Tensor[] = []
  const step = stepOf(given, (x, target) => {
    const loss = lossOf(given.model(x), target)
    kept.push(loss)
    return loss
  })
  const [first, last] = await afterSteps(step)
  expect(last.pieces - first.pieces).toBe(800)
  expect(last.allocated - first.allocated).toBeGreaterThan(0)
  expect(last.objects - first.objects).toBeGreaterThan(800 * OBJECTS)
})
