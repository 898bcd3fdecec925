// memoryTimeline: who has how much memory while a program runs.
import { describe, expect, it } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import type { Tensor } from 'tensorfx'
import { MemoryTimeline, memoryTimeline } from 'tensorfx/debug'
import { observed } from '../../../src/dispatch/index.ts'
import { recordsAll } from '../../../src/kernels/memory/owners.ts'

class Net extends nn.Module {
  fc1 = new nn.Linear(100, 300)
  bn = new nn.BatchNorm1d(300)
  fc2 = new nn.Linear(300, 10)
  override forward(x: Tensor): Tensor {
    return this.fc2(torch.relu(this.bn(this.fc1(x))))
  }
}

const PARAMETERS = 4 * (100 * 300 + 300 + 2 * 300 + 300 * 10 + 10)
const BATCH = 200

/** The bytes of each category at a point; by default the last. */
function categories(timeline: MemoryTimeline, point = timeline.points.length - 1): Readonly<Record<string, number>> {
  const { owners, bytes } = timeline.by('category')
  return Object.fromEntries(owners.map((owner, i) => [owner, bytes[point]?.[i] ?? 0]))
}

function most(timeline: MemoryTimeline, category: string): number {
  const { owners, bytes } = timeline.by('category')
  const at = owners.indexOf(category)
  return bytes.reduce((largest, row) => Math.max(largest, row[at] ?? 0), 0)
}

describe('memoryTimeline', () => {
  const net = new Net()
  const optimizer = new optim.Adam(net.parameters())
  const x = torch.randn([BATCH, 100])
  const step = (): void => {
    optimizer.zeroGrad()
    net(x).square().mean().backward()
    optimizer.step()
  }

  let taken: MemoryTimeline | undefined
  const steps = (): MemoryTimeline => (taken ??= memoryTimeline(step))

  it('tells parameters, buffers, gradients, state, inputs and activations apart, by their bytes', () => {
    const timeline = steps()
    const end = categories(timeline)
    // Besides the numbers there are some for each parameter, as how often it was updated.
    expect([end['parameter'], end['gradient'], end['input']]).toEqual([PARAMETERS, PARAMETERS, 4 * BATCH * 100])
    expect(end['optimizer state']).toBeGreaterThanOrEqual(2 * PARAMETERS)
    expect(end['optimizer state']).toBeLessThanOrEqual(2 * PARAMETERS + 1000)
    expect(end['buffer']).toBe(4 * (300 + 300) + 8)
    // The results of two layers, of the norm and of relu, which a backward reads.
    expect(most(timeline, 'activation')).toBeGreaterThanOrEqual(4 * BATCH * 300 * 3)
    expect(end['activation']).toBeLessThan(4 * BATCH)
    const holder = timeline.holders(timeline.points.length - 1).find(({ name }) => name === 'Net.fc1.weight')
    expect(holder).toMatchObject({ category: 'parameter', shape: [300, 100], dtype: 'float32', count: 1, bytes: 4 * 30_000 })
    expect(timeline.holders(timeline.points.length - 1).map(({ name }) => name)).toContain('Net.fc1.weight.grad')
  })

  it('adds up to what is in use, whatever it is told apart by', () => {
    const timeline = steps()
    for (const ownership of ['category', 'operator', 'module'] as const) {
      const { owners, bytes } = timeline.by(ownership)
      expect(bytes).toHaveLength(timeline.points.length)
      bytes.forEach((row, i) => {
        expect(row).toHaveLength(owners.length)
        expect(Math.min(...row)).toBeGreaterThanOrEqual(0)
        expect(Math.abs(row.reduce((sum, one) => sum + one, 0) - (timeline.points[i]?.inUse ?? 0))).toBeLessThanOrEqual(64 * 1024)
      })
    }
    const { owners } = timeline.by('module')
    expect(owners).toEqual(expect.arrayContaining(['Net.fc1', 'Net.bn', 'Net.fc2']))
    expect(timeline.by('operator').owners).toContain('torch.nn.functional.linear')
    const times = timeline.points.map(({ time }) => time)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(times[0]).toBe(0)
  })

  it('calls what no backward reads temporary, and sees when it ends', () => {
    const size = 2 ** 18
    const two = (): void => {
      for (let i = 0; i < 2; i++) torch.ones([size]).add(1)
    }
    const timeline = memoryTimeline(two, { warmup: 0, runs: 3 })
    expect(most(timeline, 'temporary')).toBeGreaterThanOrEqual(4 * size)
    // Six times two of them, of which few live at once.
    expect(most(timeline, 'temporary')).toBeLessThanOrEqual(4 * size * 8)
    expect(categories(timeline)['activation'] ?? 0).toBe(0)
  })

  it('sees compiled training', () => {
    const compiled = compile((input: Tensor) => net(input).square().mean())
    const timeline = memoryTimeline(() => {
      optimizer.zeroGrad()
      compiled(x).backward()
      optimizer.step()
    })
    const end = categories(timeline)
    expect([end['parameter'], end['gradient']]).toEqual([PARAMETERS, PARAMETERS])
    expect(most(timeline, 'activation')).toBeGreaterThan(4 * BATCH * 300)
  })

  it('prints a table, and is a page', () => {
    const timeline = steps()
    const text = String(timeline)
    expect(text).toMatch(/^Category +At the peak +At most +At the end\n-/)
    expect(text).toMatch(/^parameter +.* KiB +.* KiB +.* KiB$/m)
    expect(text).toMatch(/^Peak: .* MiB in use$/m)
    expect(text).toMatch(/^activation +float32 \[200, 300\] +torch\.\S+ +Net/m)
    const page = timeline.page({ title: 'Steps' })
    const data: unknown = JSON.parse(/<script id="data"[^>]*>(.*?)<\/script>/s.exec(page)?.[1] ?? 'null')
    expect(data).toMatchObject({ page: 'memory', peak: timeline.peak, series: { module: { owners: timeline.by('module').owners } } })
    expect(page).not.toMatch(/(?:src|href)=|@import|url\(/)
  })

  it('thins out many moments, and keeps the lowest and the highest', () => {
    const points = Array.from({ length: 5000 }, (_, i) => ({ time: 100 + i, inUse: i === 3210 ? 1e6 : i === 1234 ? 0 : 1000 + (i % 7), scratch: 0 }))
    const timeline = new MemoryTimeline([], points)
    expect(timeline.points.length).toBeLessThan(900)
    expect([timeline.points[0]?.time, timeline.points.at(-1)?.time]).toEqual([0, 4999])
    expect(timeline.points[timeline.peak]).toEqual({ time: 3210, inUse: 1e6, scratch: 0 })
    expect(timeline.points.filter(({ inUse }) => inUse === 0)).toHaveLength(1)
    expect(timeline.by('category').bytes.map(([scratch, unknown]) => [scratch, unknown])).toEqual(timeline.points.map(({ inUse }) => [0, inUse]))
  })

  it('leaves nothing behind, also after an error of the program', () => {
    const failing = (): never => {
      torch.relu(x)
      throw new RangeError('mine')
    }
    for (const warmup of [0, 1]) expect(() => memoryTimeline(failing, { warmup })).toThrow('mine')
    expect([observed.observer, recordsAll()]).toEqual([null, false])
  })

  it('refuses wrong arguments', () => {
    const fn = (): Tensor => torch.relu(x)
    // @ts-expect-error -- no function
    expect(() => memoryTimeline(x)).toThrow("memoryTimeline: argument 'fn' must be a function, got")
    expect(() => memoryTimeline(fn, { runs: 0 })).toThrow("memoryTimeline: option 'runs' must be a whole number from 1 on, got 0")
    // @ts-expect-error -- unknown option
    expect(() => memoryTimeline(fn, { run: 2 })).toThrow("memoryTimeline: unknown option 'run'; known are warmup, runs.")
    expect(() => memoryTimeline(async () => fn())).toThrow('memoryTimeline: fn returned a promise')
    // @ts-expect-error -- unknown ownership
    expect(() => memoryTimeline(fn).by('line')).toThrow("MemoryTimeline.by: argument 'ownership' must be category, operator or module, got 'line'")
    expect(() => memoryTimeline(fn).holders(-1)).toThrow("MemoryTimeline.holders: argument 'point' must be the number of a point")
  })
})
