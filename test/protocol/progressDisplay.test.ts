// Progress of long work: a bar on a terminal, a line every few seconds elsewhere, and functions that programs give.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends, minifier } from 'tensorfx/debug'
import type { Progress } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { genLayoutAutotuner, optimizeForInference } from 'tensorfx/fx/experimental'
import { toOnnx } from 'tensorfx/interop/onnx'
import { ProgressDisplay, progressOf } from '../../src/protocol/progressDisplay.ts'

const state = (done: number, total: number | null = 40, text = ''): Progress => ({ task: 'export', done, total, text })

/** A display, what it has written, and its clock in milliseconds. */
function displayOn(columns: number | null): { readonly display: ProgressDisplay; readonly written: string[]; readonly clock: { time: number } } {
  const written: string[] = []
  const clock = { time: 1000 }
  const terminal = columns === null ? null : { columns, isColored: false }
  return { display: new ProgressDisplay({ write: (text) => void written.push(text), terminal, now: () => clock.time }), written, clock }
}

describe('on a terminal', () => {
  it('there is a bar, each state in the place of the one before, and nothing at the end', () => {
    const { display, written, clock } = displayOn(80)
    display.report(state(0))
    clock.time += 3000
    display.report(state(10, 40, 'conv1'))
    display.end()
    display.end()
    expect(written).toEqual([
      '\r\u001B[2Kexport [------------------------] 0/40 0% 0 s',
      '\r\u001B[2Kexport [######------------------] 10/40 25% 3 s, conv1',
      '\r\u001B[2K',
    ])
  })

  it('it is drawn at most some times a second, and fits', () => {
    const { display, written, clock } = displayOn(30)
    for (let i = 0; i < 1000; i++) {
      display.report(state(i, 1000, 'a text that is too long'))
      clock.time += 1
    }
    expect(written.length).toBeGreaterThan(8)
    expect(written.length).toBeLessThan(16)
    for (const text of written) expect(text.replace('\r\u001B[2K', '').length).toBeLessThan(30)
  })

  it('counts where the end is not known, and lines stand above', () => {
    const { display, written } = displayOn(80)
    display.report(state(7, null, '13 nodes'))
    display.note('Strategy: one')
    display.note('Strategy: two')
    expect(written).toEqual(['\r\u001B[2Kexport 7 0 s, 13 nodes', '\r\u001B[2K', 'Strategy: one\n', 'Strategy: two\n'])
  })
})

it('elsewhere there is a line every five seconds, and none for short work', () => {
  const { display, written, clock } = displayOn(null)
  for (let i = 0; i < 12; i++) {
    display.report(state(i, 12, `step ${i}`))
    clock.time += 1000
  }
  display.note('a line')
  display.end()
  expect(written).toEqual(['export 5/12 41% 5 s, step 5\n', 'export 10/12 83% 10 s, step 10\n', 'a line\n'])
})

it('knows a terminal from a file, and from one whose cursor cannot go back', () => {
  for (const [isTTY, TERM, bar] of [
    [true, 'xterm', true],
    [true, 'dumb', false],
    [false, 'xterm', false],
  ] as const) {
    const written: string[] = []
    progressOf({ isTTY, columns: 80, write: (text: string) => written.push(text) }, { TERM }).report(state(1))
    expect(written.length === 1, TERM).toBe(bar)
  }
})

describe('functions tell it', () => {
  it('minifier, of each query', async () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x.add(1)).mul(2).sub(3))
    const told: Progress[] = []
    const { queries } = await minifier(gm, [torch.ones([2])], (candidate) => candidate.code.includes('relu'), {
      onProgress: (progress) => told.push(progress),
    })
    expect(told.map(({ task, done, total }) => [task, done, total])).toEqual(Array.from({ length: queries }, (_, i) => ['minify', i + 1, null]))
    expect(told.at(-1)?.text).toMatch(/, \d nodes$/)
    // @ts-expect-error -- no function
    await expect(minifier(gm, [torch.ones([2])], () => true, { onProgress: 1 })).rejects.toThrow(
      "argument 'options.onProgress' must be a function, got 1",
    )
  })

  it('toOnnx, of each node', () => {
    const told: Progress[] = []
    toOnnx(
      symbolicTrace((x: Tensor) => torch.relu(x).add(1)),
      { inputs: [torch.ones([2])], onProgress: (progress) => told.push(progress) },
    )
    const total = told.length
    expect(told.map(({ done, total: all }) => [done, all])).toEqual(told.map((_, i) => [i, total]))
    expect(told.map(({ text }) => text)).toContain('relu')
  })

  it('a search for the worst input, of each try on a backend', async () => {
    const told: Progress[] = []
    const worstInput = { tries: 5, onProgress: (progress: Progress) => told.push(progress) }
    await compareBackends(
      symbolicTrace((x: Tensor) => torch.relu(x).add(1)),
      [torch.ones([2])],
      { backends: ['eager'], worstInput },
    )
    expect(told).toEqual([1, 2, 3, 4].map((done) => ({ task: 'worst input', done, total: 5, text: 'eager' })))
    await expect(
      compareBackends(
        symbolicTrace((x: Tensor) => x.add(1)),
        [torch.ones([2])],
        // @ts-expect-error -- no function
        { backends: ['eager'], worstInput: { onProgress: 1 } },
      ),
    ).rejects.toThrow("argument 'options.worstInput.onProgress' must be a function, got 1")
  })

  it('an autotuner, of each region', () => {
    class Net extends nn.Module {
      conv = new nn.Conv2d(1, 2, 3)
      override forward(x: Tensor): Tensor {
        return torch.relu(this.conv(x))
      }
    }
    const told: Progress[] = []
    const x = torch.ones([1, 1, 5, 5])
    const layout = { enter: 'contiguous', leave: 'contiguous', supports: (node: { readonly op: string }) => node.op === 'call_module' }
    const heuristic = genLayoutAutotuner([x], layout, { iters: 1, onProgress: (progress) => told.push(progress) })
    optimizeForInference(new Net().eval(), { layoutOptimize: { ...layout, heuristic } })
    expect(told).toEqual([{ task: 'autotune', done: 0, total: null, text: 'conv' }])
  })
})
