// GradScaler against 30 recorded steps of PyTorch's in each of many configurations (test/goldens/around/gradscaler.json).
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const golden = <T>(name: string): T => JSON.parse(readFileSync(new URL(`../goldens/around/${name}.json`, import.meta.url), 'utf8')) as T

type Value = number | string
interface Step {
  readonly scaled_loss: Value
  readonly scaled_grad: readonly Value[]
  readonly stepped: boolean
  readonly p: readonly Value[]
  readonly q: readonly Value[] | null
  readonly scale: Value
  readonly state: Readonly<Record<string, Value>>
}
interface Run {
  readonly name: string
  readonly config: Readonly<Record<string, number | boolean>>
  readonly pattern: string
  readonly mode: string
  readonly steps: readonly Step[]
}
const runs = golden<readonly Run[]>('gradscaler')

const camel = (name: string): string =>
  name.replaceAll(/_+([a-z])/g, (_, letter: string) => letter.toUpperCase()).replace(/^[A-Z]/, (letter) => letter.toLowerCase())
const camelKeys = <V>(of: Readonly<Record<string, V>>): Record<string, V> =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [camel(key), value]))
const text = (value: number): Value => (Number.isFinite(value) ? value : Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf')

/** What a step came to. */
interface Outcome {
  readonly loss: number
  readonly grad: readonly unknown[]
  readonly stepped: boolean
  readonly p: readonly unknown[]
  readonly q: readonly unknown[]
  readonly scale: number
  readonly state: object
}

const values = (tensor: Tensor | null): readonly unknown[] => (tensor === null ? [] : [...tensor.toTypedArray()])

function steps({ config, pattern, mode }: Run): Outcome[] {
  const [p, q] = [torch.tensor([1, -2], { requiresGrad: true }), torch.tensor([0.5], { requiresGrad: true })]
  const sgd = new optim.SGD([p], { lr: 0.1 })
  const adam = new optim.Adam([q], { lr: 0.01 })
  const scaler = new torch.amp.GradScaler(camelKeys(config))
  return [...pattern.slice(0, 30)].map((kind, i) => {
    sgd.zeroGrad()
    adam.zeroGrad()
    let loss = p
      .mul(torch.tensor([0.1, 0.2]))
      .sum()
      .mul(1 + (i % 3))
    if (mode === 'two') loss = loss.add(q.mul(0.3).sum())
    const scaled = scaler.scale(loss)
    scaled.backward()
    if (kind !== '0') torch.noGrad(() => void p.grad?.narrow(0, 1, 1).fill_(kind === '1' ? Infinity : NaN))
    const grad = values(p.grad)
    if (mode === 'unscale') {
      scaler.unscale_(sgd)
      nn.utils.clipGradNorm_([p], 0.3)
    }
    const before = p.toArray()
    const stepped = scaler.step(sgd)
    if (mode === 'two') scaler.step(adam)
    expect(stepped || JSON.stringify(p.toArray()) === JSON.stringify(before)).toBe(true)
    if (mode === 'newscale' && i === 5) scaler.update(64)
    else if (mode === 'newscale' && i === 17) scaler.update(3)
    else scaler.update()
    return {
      loss: scaled.item(),
      grad,
      stepped,
      p: values(p),
      q: values(q),
      scale: scaler.getScale(),
      state: scaler.stateDict(),
    }
  })
}

describe('as PyTorch', () => {
  it.each(runs.map((run) => [run.name, run] as const))('%s', (_, run) => {
    const close = (actual: unknown, wanted: Value): void => {
      if (typeof wanted === 'string') expect(text(Number(actual))).toBe(wanted)
      else expect(Math.abs(Number(actual) - wanted)).toBeLessThanOrEqual(2e-6 * Math.max(1, Math.abs(wanted)))
    }
    const actual = steps(run)
    expect(actual).toHaveLength(run.steps.length)
    for (const [i, wanted] of run.steps.entries()) {
      const one = actual[i]
      if (one === undefined) continue
      close(one.loss, wanted.scaled_loss)
      wanted.scaled_grad.forEach((value, k) => close(one.grad[k], value))
      wanted.p.forEach((value, k) => close(one.p[k], value))
      wanted.q?.forEach((value, k) => close(one.q[k], value))
      expect([one.stepped, one.scale, one.state], `step ${i}`).toEqual([wanted.stepped, wanted.scale, camelKeys(wanted.state)])
    }
  })
})

describe('calls in another order', () => {
  const trained = (): { scaler: optim.GradScaler; optimizer: optim.SGD } => {
    const p = torch.tensor([1], { requiresGrad: true })
    const scaler = new optim.GradScaler()
    scaler.scale(p.sum()).backward()
    return { scaler, optimizer: new optim.SGD([p], { lr: 0.1 }) }
  }
  const programs: Readonly<Record<string, () => unknown>> = {
    step_twice() {
      const { scaler, optimizer } = trained()
      scaler.step(optimizer)
      scaler.step(optimizer)
    },
    unscale_after_step() {
      const { scaler, optimizer } = trained()
      scaler.step(optimizer)
      scaler.unscale_(optimizer)
    },
    update_first: () => new optim.GradScaler().update(),
    step_without_scale: () => new optim.GradScaler().step(trained().optimizer),
    closure() {
      const { scaler, optimizer } = trained()
      Reflect.apply(scaler.step, scaler, [optimizer, () => 1])
    },
    no_grads() {
      const { scaler } = trained()
      scaler.step(new optim.SGD([torch.ones([1]).requiresGrad_()], { lr: 1 }))
    },
    unscale_fp16() {
      const p = torch.tensor([1], { dtype: 'float16', requiresGrad: true })
      const scaler = new optim.GradScaler()
      scaler.scale(p.sum()).backward()
      scaler.unscale_(new optim.SGD([p], { lr: 1 }))
    },
    setters() {
      const { scaler } = trained()
      scaler.setGrowthFactor(3)
      scaler.setBackoffFactor(0.25)
      scaler.setGrowthInterval(7)
      expect([scaler.getGrowthFactor(), scaler.getBackoffFactor(), scaler.getGrowthInterval(), scaler.isEnabled()]).toEqual([3, 0.25, 7, true])
    },
  }
  const recorded = golden<readonly { readonly name: string; readonly ok: boolean }[]>('gradscaler-errors')
  it.each(recorded.filter(({ name }) => name !== 'scale_string').map(({ name, ok }) => [name, ok] as const))('%s ends as in PyTorch', (name, ok) => {
    const run = programs[name] ?? (() => expect.unreachable(name))
    if (ok) run()
    else expect(run).toThrow(/^GradScaler\./)
  })
})

it('a scaler goes on from the state of another, and one that is off does nothing', () => {
  const scaler = new optim.GradScaler({ initScale: 8, growthInterval: 3 })
  const other = new optim.GradScaler()
  other.loadStateDict(scaler.stateDict())
  expect(other.stateDict()).toEqual(scaler.stateDict())
  const off = new optim.GradScaler({ enabled: false })
  const x = torch.ones([2])
  expect([off.scale(x) === x, off.getScale(), off.stateDict()]).toEqual([true, 1, {}])
  expect(() => other.loadStateDict({})).toThrow('the source state dict is empty')
})
