// profile: what ran, how its time adds up, and the trace of it.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { profile } from 'tensorfx/debug'
import type { Profile, ProfileEvent } from 'tensorfx/debug'
import { observed } from '../../../src/dispatch/index.ts'

const net = (): nn.Sequential => new nn.Sequential(new nn.Linear(32, 64), new nn.ReLU(), new nn.Linear(64, 8))
const x = torch.randn([16, 32])
const [first, second] = [2 * 16 * 32 * 64, 2 * 16 * 64 * 8]
const LINEAR = 'torch.nn.functional.linear'

/** How often each operator and kernel ran. */
const callsIn = (result: Profile): Readonly<Record<string, number>> =>
  Object.fromEntries(result.keyAverages().rows.map(({ name, calls }) => [name, calls]))

/** Events nest, and the own times of operators and kernels with what is outside of them are the whole time. */
function checkTimes(result: Profile): void {
  const { events } = result
  for (const event of events) {
    const outer: ProfileEvent | undefined = events[event.parent ?? -1]
    expect(event.end).toBeGreaterThanOrEqual(event.start)
    // The end of a kernel is noted a moment after it has ended.
    const moment = event.kind === 'kernel' || outer?.kind === 'kernel' ? 1 : 0
    if (outer === undefined) continue
    expect(event.start).toBeGreaterThanOrEqual(outer.start - moment)
    expect(event.end).toBeLessThanOrEqual(outer.end + moment)
  }
  const averages = result.keyAverages()
  const own = averages.rows.reduce((sum, { selfTime }) => sum + selfTime, 0)
  expect(own + averages.outsideTime).toBeCloseTo(result.totalTime, 6)
  expect(own).toBeGreaterThan(0)
  expect(averages.outsideTime).toBeGreaterThanOrEqual(-0.01 * result.totalTime)
}

describe('profile', () => {
  it('tells what each operator did: calls of all runs but those to warm up, FLOPs, bytes', () => {
    const model = net()
    let runs = 0
    const result = profile(() => (runs++, torch.noGrad(() => model(x))), { warmup: 2, runs: 3 })
    expect(runs).toBe(5)
    expect(callsIn(result)).toEqual({ [LINEAR]: 6, 'torch.nn.functional.relu': 3, 'torch.relu': 3 })
    const rows = result.keyAverages().rows
    const [linear, relu] = [LINEAR, 'torch.relu'].map((name) => rows.find((row) => row.name === name))
    expect(linear?.flops).toBe(3 * (first + second))
    const tensors = 16 * 32 + 64 * 32 + 64 + 16 * 64 + (16 * 64 + 8 * 64 + 8 + 16 * 8)
    expect(linear?.bytes).toBe(3 * 4 * tensors)
    expect(relu).toMatchObject({ kind: 'operator', flops: 0, bytes: 3 * 4 * 2 * 16 * 64 })
    expect(linear?.allocations).toBeGreaterThanOrEqual(6)
    expect(linear?.peak).toBeGreaterThanOrEqual(4 * 16 * 64)
    checkTimes(result)
  })

  it('adds up to the measured calls within 3%', () => {
    const model = new nn.Sequential(new nn.Linear(256, 512), new nn.ReLU(), new nn.Linear(512, 256))
    const input = torch.randn([128, 256])
    const compiled = compile((a: Tensor) => model(a).square().mean())
    for (const work of [() => model(input).square().mean().backward(), () => compiled(input).backward()]) {
      // A process that was interrupted between two clocks is measured again.
      const differences = Array.from({ length: 4 }, () => {
        const measured: number[] = []
        const result = profile(
          () => {
            const start = performance.now()
            work()
            measured.push(performance.now() - start)
          },
          { warmup: 2, runs: 5 },
        )
        const { rows, outsideTime } = result.keyAverages()
        const sum = rows.reduce((all, { selfTime }) => all + selfTime, 0) + outsideTime
        const spent = measured.slice(2).reduce((all, time) => all + time, 0)
        return Math.abs(sum - spent) / spent
      })
      expect(Math.min(...differences)).toBeLessThan(0.03)
    }
  })

  it('counts what an operator is composed of inside of it', () => {
    const result = profile(() => torch.matmul(torch.ones([2, 3, 4]), torch.ones([4, 5])))
    const { events } = result
    const matmul = events.findIndex(({ name }) => name === 'torch.matmul')
    const mm = events.find(({ name }) => name === 'torch.mm')
    expect(events[mm?.parent ?? -1]?.name).toBe('torch.matmul')
    const inside = events.filter(({ parent }) => parent === matmul).reduce((sum, { start, end }) => sum + end - start, 0)
    const outer = events[matmul]
    expect(outer?.self).toBeCloseTo((outer?.end ?? 0) - (outer?.start ?? 0) - inside, 9)
    expect(outer?.flops).toBe(0)
    expect(mm?.flops).toBe(2 * 2 * 3 * 4 * 5)
    checkTimes(result)
  })

  it('groups by module, to which the operators of its backward belong', () => {
    const model = net()
    const result = profile(() => model(x).sum().backward())
    const rows = Object.fromEntries(result.keyAverages({ groupBy: 'module' }).rows.map((row) => [row.name, row]))
    expect(Object.keys(rows)).toEqual(['Sequential', 'Sequential.0', 'Sequential.1', 'Sequential.2'])
    // The first layer needs no gradient of its input.
    expect([rows['Sequential.0']?.flops, rows['Sequential.2']?.flops]).toEqual([2 * first, 3 * second])
    const backward = result.events.filter((event) => event.backward !== null)
    expect(new Set(backward.map(({ module }) => module))).toEqual(new Set([null, 'Sequential.0', 'Sequential.1', 'Sequential.2']))
    expect(rows['Sequential']?.selfTime).toBeLessThan(rows['Sequential']?.totalTime ?? 0)
    checkTimes(result)
  })

  it('runs compiled functions compiled, and tells their kernels', () => {
    const f = compile((a: Tensor) =>
      torch
        .relu(a)
        .mul(2)
        .mm(torch.ones([32, 4]))
        .softmax(0),
    )
    f(x)
    const result = profile(() => f(x), { runs: 2 })
    const kernels = result.keyAverages({ groupBy: 'kernel' }).rows
    expect(kernels.map(({ engine }) => engine)).toContain('template')
    for (const { name, calls, engine, bytes } of kernels)
      expect([name.startsWith('compiled_graph_'), calls, engine === 'loops' || engine === 'template', bytes > 0]).toEqual([true, 2, true, true])
    expect(kernels.reduce((sum, { flops }) => sum + flops, 0)).toBe(2 * (2 * 16 * 32 * 4))
    expect(callsIn(result)['torch.relu']).toBeUndefined()
    checkTimes(result)
  })

  it('counts the eager kernels of compiled functions inside of their kernels', () => {
    const f = compile((a: Tensor) =>
      torch.linalg
        .inv(a.mm(a).add(torch.eye(6)))
        .cumsum(0)
        .mul(2),
    )
    const a = torch.randn([6, 6])
    f(a)
    const result = profile(() => f(a), { runs: 5 })
    const inside = result.events.filter(({ parent }) => result.events[parent ?? -1]?.kind === 'kernel')
    expect(inside.map(({ name }) => name)).toContain('torch.cumsum')
    checkTimes(result)
  })

  it('groups by the shapes of inputs', () => {
    const model = net()
    const { rows } = profile(() => torch.noGrad(() => model(x)), { runs: 2 }).keyAverages({ groupBy: 'inputShape' })
    const shapes = rows.filter(({ name }) => name === LINEAR).map((row) => [row.shapes, row.calls, row.flops])
    expect(shapes).toEqual([
      [[[16, 32], [64, 32], [64]], 2, 2 * first],
      [[[16, 64], [8, 64], [8]], 2, 2 * second],
    ])
    const table = profile(() => torch.mm(x, torch.ones([32, 3])))
      .keyAverages({ groupBy: 'inputShape' })
      .table({ sortBy: 'flops', rowLimit: 1 })
    expect(table).toMatch(/Engine +Input Shapes\n.*\n.*eager, wasm(?:-relaxed)? +\[\[16, 32\], \[32, 3\]\]\n/)
  })

  it('tells the most bytes that were in use during each call, and leaves the peak of the program as it is', () => {
    torch.memory.resetPeakMemoryStats()
    const size = 2 ** 20
    const big = torch.ones([size])
    const result = profile(() => {
      const doubled = big.add(big)
      doubled.dispose()
      return torch.relu(torch.ones([4]))
    })
    const peakOf = (name: string): number => result.events.find((event) => event.name === name)?.peak ?? 0
    expect(peakOf('torch.add') - peakOf('torch.relu')).toBeGreaterThan(4 * size - 2 ** 16)
    for (const { peak, inUse } of result.events) expect(peak).toBeGreaterThanOrEqual(inUse)
    expect(torch.memory.maxMemoryAllocated()).toBeGreaterThanOrEqual(peakOf('torch.add'))
  })

  it('has arrows from operators to those of their gradients in its trace', () => {
    const model = net()
    const result = profile(() => model(x).relu().sum().backward(), { runs: 2 })
    const { traceEvents } = JSON.parse(result.exportChromeTrace())
    const of = (ph: string): { ts: number; id: number; dur: number; name: string; args: Record<string, unknown> }[] =>
      traceEvents.filter((entry: { ph: string }) => entry.ph === ph)
    const [slices, starts, ends] = [of('X'), of('s'), of('f')]
    expect(slices).toHaveLength(result.events.length)
    expect(Math.min(...slices.map(({ ts }) => ts))).toBe(0)
    // Two linear layers, two relus and a sum, in two runs.
    expect(starts).toHaveLength(2 * 5)
    expect(new Set(starts.map(({ id }) => id)).size).toBe(10)
    for (const [i, start] of starts.entries()) {
      const end = ends[i]
      expect([end?.id, (end?.ts ?? 0) > start.ts]).toEqual([start.id, true])
      const at = (ts?: number): (typeof slices)[number] | undefined =>
        slices.find((slice) => slice.ts === ts && slice.args['Sequence number'] === start.id)
      expect([at(start.ts)?.args['backward'], typeof at(end?.ts)?.args['backward']]).toEqual([null, 'string'])
    }
  })

  it('prints PyTorch’s table, sorted and cut as asked', () => {
    const model = net()
    const averages = profile(() => model(x)).keyAverages()
    const lines = averages.table({ sortBy: 'flops', rowLimit: 1 }).split('\n')
    expect(lines[0]?.split(/\s{2,}/)).toEqual([
      'Name',
      'Self CPU %',
      'Self CPU',
      'CPU total %',
      'CPU total',
      'CPU time avg',
      '# of Calls',
      'FLOPs',
      'Bytes',
      'Allocations',
      'CPU Mem',
      'Peak Mem',
      'Engine',
    ])
    expect(lines).toHaveLength(4)
    expect(lines[2]).toMatch(new RegExp(`^${LINEAR} .* 2 +${(first + second).toLocaleString('en-US')} `))
    expect(lines[3]).toMatch(/^CPU time total: .*, outside of operators and kernels: /)
    expect(String(averages)).toBe(averages.table())
  })

  it('writes measures for developer tools if asked', () => {
    profile(() => torch.relu(x))
    expect(performance.getEntriesByName('torch.relu')).toEqual([])
    const { events } = profile(() => torch.relu(x), { measures: true })
    const [entry] = performance.getEntriesByName('torch.relu')
    expect([entry?.entryType, entry?.startTime]).toEqual(['measure', events[0]?.start])
    performance.clearMeasures()
  })

  it('leaves nothing behind, also after an error of the program', () => {
    const failing = (): never => {
      torch.relu(x)
      throw new RangeError('mine')
    }
    for (const warmup of [0, 1]) expect(() => profile(failing, { warmup })).toThrow('mine')
    expect(observed.observer).toBeNull()
    expect(profile(() => torch.relu(x)).events).toHaveLength(1)
    expect(observed.observer).toBeNull()
    // An operator that fails is an event as others are.
    const result = profile(() => {
      expect(() => torch.mm(x, x)).toThrow('torch.mm')
      torch.relu(x)
    })
    expect(result.events.map(({ name, parent }) => [name, parent])).toEqual([
      ['torch.mm', null],
      ['torch.relu', null],
    ])
  })

  it('refuses wrong arguments', () => {
    const fn = (): Tensor => torch.relu(x)
    // @ts-expect-error -- no function
    expect(() => profile(x)).toThrow("profile: argument 'fn' must be a function, got")
    expect(() => profile(fn, { runs: 0 })).toThrow("profile: option 'runs' must be a whole number from 1 on, got 0")
    expect(() => profile(fn, { warmup: 1.5 })).toThrow("profile: option 'warmup' must be a whole number from 0 on, got 1.5")
    // @ts-expect-error -- unknown option
    expect(() => profile(fn, { repeat: 2 })).toThrow("profile: unknown option 'repeat'")
    expect(() => profile(async () => fn())).toThrow('profile: fn returned a promise')
    expect(() => profile(() => profile(fn))).toThrow('profile: a profile is being taken already')
    const result = profile(fn)
    // @ts-expect-error -- unknown group
    expect(() => result.keyAverages({ groupBy: 'line' })).toThrow(
      "option 'groupBy' must be one of operator, inputShape, kernel, module, node, got 'line'",
    )
    // @ts-expect-error -- unknown column
    expect(() => result.keyAverages().table({ sortBy: 'time' })).toThrow("option 'sortBy' must be one of selfTime, totalTime, calls")
    expect(() => result.keyAverages().table({ rowLimit: 0 })).toThrow("option 'rowLimit' must be at least 1, got 0")
  })
})
