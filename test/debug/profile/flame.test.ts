// The flame graph of a profile: frames that hold each other, and the page.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import type { Tensor } from 'tensorfx'
import { profile } from 'tensorfx/debug'
import { flameTree } from '../../../src/debug/profile/flameTree.ts'
import type { FlameFrame } from '../../../src/debug/profile/flameTree.ts'

const net = new nn.Sequential(new nn.Linear(8, 4), new nn.ReLU())
const x = torch.randn([2, 8])

/** Frames as lines: kind, name, calls. */
const lines = (frames: readonly FlameFrame[], indent = ''): readonly string[] =>
  frames.flatMap(({ kind, name, calls, children }) => [`${indent}${kind} ${name} ${calls}`, ...lines(children, `${indent}  `)])

const all = (frames: readonly FlameFrame[]): readonly FlameFrame[] => frames.flatMap((frame) => [frame, ...all(frame.children)])

describe('the tree of frames', () => {
  it('has what ran within what, calls in one place as one frame', () => {
    const { events } = profile(() => torch.noGrad(() => net(x).add(1)), { runs: 3 })
    expect(lines(flameTree(events))).toEqual([
      'module Sequential 3',
      '  module Sequential.0 3',
      '    operator torch.nn.functional.linear 3',
      '  module Sequential.1 3',
      '    operator torch.nn.functional.relu 3',
      '      operator torch.relu 3',
      'operator torch.add 3',
    ])
  })

  it('has backward passes by module', () => {
    const { events } = profile(() => net(x).sum().backward())
    const tree = flameTree(events)
    const backward = tree.find(({ kind }) => kind === 'backward')
    expect(tree.map(({ name }) => name)).toEqual(expect.arrayContaining(['Sequential', 'torch.sum', 'backward']))
    expect(backward?.children.map(({ name }) => name)).toEqual(expect.arrayContaining(['Sequential.1', 'Sequential.0']))
  })

  it('adds up: no frame is shorter than what is inside, and FLOPs of a frame are those of all inside', () => {
    const f = compile((a: Tensor) => net(a).square().sum())
    for (const fn of [() => net(x).sum().backward(), () => f(x).backward()]) {
      const { events } = profile(fn, { warmup: 2, runs: 2 })
      const tree = flameTree(events)
      for (const { time, children, name } of all(tree))
        expect(
          children.reduce((sum, child) => sum + child.time, 0),
          name,
        ).toBeLessThanOrEqual(time + 1e-9)
      const outermost = events.filter(({ parent }) => parent === null)
      expect(tree.reduce((sum, { time }) => sum + time, 0)).toBeCloseTo(
        outermost.reduce((sum, { start, end }) => sum + end - start, 0),
        6,
      )
      expect(tree.reduce((sum, { flops }) => sum + flops, 0)).toBe(events.reduce((sum, { flops }) => sum + flops, 0))
    }
  })

  it('calls kernels by the nodes that they compute', () => {
    const f = compile((a: Tensor) => torch.relu(a).mul(2))
    expect(lines(flameTree(profile(() => f(x)).events))).toEqual(['kernel relu mul 1'])
  })
})

describe('the page', () => {
  it('holds its data, title and program, and reads no other file', () => {
    const page = profile(() => net(x), { runs: 2 }).flamePage({ title: 'A <b> & "c"' })
    expect(page).toMatch(/<title>A &lt;b&gt; &amp; &quot;c&quot;<\/title>/)
    const data: unknown = JSON.parse(/<script id="data"[^>]*>(.*?)<\/script>/s.exec(page)?.[1] ?? 'null')
    expect(data).toMatchObject({
      page: 'flame',
      frames: [
        ['Sequential', 'module', expect.any(Number) as number, 2, 2 * 2 * 2 * 8 * 4, expect.any(Number) as number, expect.any(Array) as unknown[]],
      ],
    })
    expect(page).not.toMatch(/(?:src|href)=|@import|url\(/)
    expect(page).toMatch(/\d (?:µs|ms|s) in 2 runs, at most .* in use/)
  })
})
