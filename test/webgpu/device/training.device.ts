// compile on tensors that are on the GPU: training steps, forward, backward and optimizer, against eager mode there and against the CPU. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { init, stats, synchronize } from 'tensorfx/webgpu'
import type { DeviceStats } from 'tensorfx/webgpu'
// @ts-expect-error -- written in JavaScript
import { GPT } from '../../../examples/gpt/model.mjs'
import { NOISE, worst } from './modelCases.ts'

const F = nn.functional
type Model = nn.Module & { call(x: Tensor): Tensor }

beforeAll(async () => init({ thread: false }))

const read = async (tensor: Tensor): Promise<Tensor> => torch.tensor((await tensor.toArrayAsync()) as number[], { dtype: tensor.dtype })

interface Case {
  readonly make: () => Model
  readonly x: () => Tensor
  readonly y: () => Tensor
}

const VOCABULARY = 11
const models: Readonly<Record<string, Case>> = {
  MLP: {
    make: () => new nn.Sequential(new nn.Linear(4, 8), new nn.Tanh(), new nn.LayerNorm([8]), new nn.Linear(8, 3)),
    x: () => torch.randn([6, 4]),
    y: () => torch.randint(0, 3, [6]),
  },
  CNN: {
    make: () =>
      new nn.Sequential(
        new nn.Conv2d(1, 3, 3, { padding: 1, bias: false }),
        new nn.BatchNorm2d(3),
        new nn.ReLU(),
        new nn.MaxPool2d(2),
        new nn.Flatten(),
        new nn.Linear(12, 2),
      ),
    x: () => torch.randn([3, 1, 4, 4]),
    y: () => torch.randint(0, 2, [3]),
  },
  GPT: {
    make: () => new GPT({ vocabulary: VOCABULARY, context: 8, width: 16, heads: 2, layers: 2 }) as Model,
    x: () => torch.randint(0, VOCABULARY, [2, 8]),
    y: () => torch.randint(0, VOCABULARY, [2, 8]),
  },
}

const RULES = {
  SGD: (model: Model) => new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 }),
  Adam: (model: Model) => new optim.Adam(model.parameters(), { lr: 0.01 }),
}

interface Training {
  readonly model: Model
  readonly input: Tensor
  readonly target: Tensor
  /** One step; its loss. */
  readonly step: (x: Tensor, y: Tensor) => Tensor
}

/** A model and a step of its training; with `noise` the input, or where that is integers the first parameter, is changed by that part of its largest value. */
function trainingOf(name: string, rule: keyof typeof RULES, device: 'cpu' | 'webgpu', isCompiled: boolean, noise = 0): Training {
  const given = models[name]
  if (given === undefined) throw new Error(name)
  torch.manualSeed(1)
  const [model, x, y] = [given.make(), given.x(), given.y()]
  const changed = (value: Tensor): Tensor => value.add(torch.randn(value.shape).mul(noise).mul(value.detach().abs().max()))
  const [first] = model.parameters()
  if (noise > 0 && x.dtype !== 'float32') torch.noGrad(() => first?.copy_(changed(first)))
  model.to(device)
  const optimizer = RULES[rule](model)
  const step = (input: Tensor, target: Tensor): Tensor => {
    optimizer.zeroGrad()
    const logits = model.call(input)
    const loss = F.crossEntropy(logits.view(-1, logits.shape.at(-1) ?? 1), target.view(-1))
    loss.backward()
    optimizer.step()
    return loss.detach()
  }
  const input = noise > 0 && x.dtype === 'float32' ? changed(x) : x
  return { model, input: input.to(device), target: y.to(device), step: isCompiled ? compile(step) : step }
}

/** The losses and weights of ten steps. */
async function tenSteps(...how: Parameters<typeof trainingOf>): Promise<readonly Tensor[]> {
  const { model, input, target, step } = trainingOf(...how)
  const losses = Array.from({ length: 10 }, () => step(input, target))
  const made = [...losses, ...model.parameters(), ...model.buffers()]
  expect(new Set(made.map((tensor) => tensor.device))).toEqual(new Set([how[2]]))
  return Promise.all(made.map(read))
}

describe.each(Object.keys(models))('ten steps of %s', (name) => {
  test.each(['SGD', 'Adam'] as const)('with %s, compiled, give the losses and weights of eager mode there and of the CPU', async (rule) => {
    const want = await tenSteps(name, rule, 'cpu', true)
    const own = worst(await tenSteps(name, rule, 'cpu', true, NOISE), want)
    const got = await tenSteps(name, rule, 'webgpu', true)
    const eager = await tenSteps(name, rule, 'webgpu', false)
    const why = `with the input changed by ${NOISE} the CPU differs from itself by ${own}`
    expect(worst(got, want), why).toBeLessThan(2 * own)
    expect(worst(got, eager), why).toBeLessThan(2 * own)
  })

  test('after warm-up are one submission each at most, and make no buffer, pipeline or bind group, and read nothing back', async () => {
    const { input, target, step } = trainingOf(name, 'Adam', 'webgpu', true)
    // For 16 calls compile keeps what a path overwrites.
    for (let i = 0; i < 18; i++) step(input, target)
    await synchronize()
    const before = stats()
    let loss = step(input, target)
    for (let i = 1; i < 8; i++) loss = step(input, target)
    await synchronize()
    const after = stats()
    const done = (what: keyof DeviceStats): number => (after?.[what] ?? NaN) - (before?.[what] ?? NaN)
    const none = ['pipelines', 'bindGroups', 'readbacks', 'bytesUp'] as const
    expect(Object.fromEntries(none.map((what) => [what, done(what)]))).toEqual({ pipelines: 0, bindGroups: 0, readbacks: 0, bytesUp: 0 })
    // Those that wait for each other are submitted together.
    expect(done('submits')).toBeGreaterThan(0)
    expect(done('submits')).toBeLessThanOrEqual(8)
    // Those of programs that were dropped may go.
    expect(Math.max(done('buffers'), done('bytes'))).toBeLessThanOrEqual(0)
    expect(Number.isFinite(Number(await loss.itemAsync()))).toBe(true)
  })
})
