// The whole stream of one program, and what each log prints of it. After a change: npx vitest run test/events/golden.test.ts -u, and read the difference.
import { afterEach, describe, expect, it } from 'vitest'
import { eventKinds, onEvent, setLogSink, setLogs } from 'tensorfx/debug'
import type { CompileEvent, LogSettings } from 'tensorfx/debug'
import { Numbers, describeEvent } from './normal.ts'
import { runProgram } from './program.ts'

afterEach(() => {
  setLogs()
  setLogSink(null)
})

function eventsOf(program: () => void): readonly CompileEvent[] {
  const events: CompileEvent[] = []
  using _listening = onEvent((event) => events.push(event), { kinds: eventKinds })
  program()
  return events
}

describe('a program with a graph break, a nested module, a training step and a recompile', () => {
  const events = eventsOf(runProgram)

  it('is told event by event', async () => {
    const numbers = new Numbers()
    // Whether a kernel is known depends on the programs before, and its size on nothing that belongs here.
    const text = events.map((event) => describeEvent(event, numbers).replace(/ {2}(?:cached|wasmBytes): .*/g, '  …')).join('\n\n')
    await expect(`${text}\n`).toMatchFileSnapshot('../goldens/events/stream.txt')
  })

  it('has ids that count up, times that do not run backward, and text only', () => {
    const ids = events.map((event) => event.id)
    expect(ids).toEqual(ids.map((_, i) => (ids[0] ?? 0) + i))
    for (const [i, event] of events.entries()) expect(event.time).toBeGreaterThanOrEqual(events[i - 1]?.time ?? 0)
    expect(JSON.parse(JSON.stringify(events))).toEqual(events)
  })

  it('links kernels to their graph, graphs to their parent and function, and all to the call', () => {
    const graphs = events.filter((event) => event.kind === 'graph')
    const kernels = events.filter((event) => event.kind === 'kernel')
    expect(kernels.length).toBeGreaterThan(4)
    for (const { graph, origins } of kernels) {
      const owner = graphs.find((other) => other.graph === graph)
      for (const origin of origins) expect(owner?.nodes.map((node) => node.name)).toContain(origin)
    }
    for (const { role, parent, call } of graphs) {
      if (role === 'captured') expect([parent, typeof call]).toEqual([null, 'number'])
      else expect(graphs.find((other) => other.graph === parent)?.role).toBe('captured')
      // The backward is compiled when it first runs, after the call.
      if (role === 'backward') expect(call).toBe(null)
    }
    expect(new Set(events.map((event) => event.fn)).size).toBe(1)
  })

  it('opens and closes modules, functions and calls in pairs', () => {
    const open: string[] = []
    let pairs = 0
    for (const event of events) {
      if (event.kind !== 'inline' && event.kind !== 'call') continue
      const name = event.kind === 'call' ? `call ${event.call}` : `${event.what} ${event.name} ${event.depth}`
      if (event.phase === 'enter' || event.phase === 'start') open.push(name)
      else {
        pairs++
        expect(open.pop()).toBe(name)
      }
    }
    expect([open, pairs]).toEqual([[], 3 + 3 * 3 + 4 * 2])
  })
})

const logs: readonly LogSettings[] = [
  { graph_breaks: true },
  { recompiles: true },
  { guards: true },
  { graph: true },
  { graph_code: true },
  { graph_sizes: true },
  { trace: true },
  { trace_call: true },
  { aot_joint_graph: true },
  { aot_graphs: true },
  { fusion: true },
  { schedule: true },
  { output_code: true },
  { kernel_code: true },
  { perf_hints: true },
  { dynamo: 'info' },
  { dynamo: 'debug' },
  { aot: 'info' },
  { inductor: 'info' },
]

it('each log prints its part', async () => {
  const texts = logs.map((settings) => {
    const numbers = new Numbers()
    const lines: string[] = []
    setLogSink((level, message) => lines.push(level === 'info' ? message : `${level}: ${message}`))
    setLogs(settings)
    runProgram()
    const text = lines.join('\n').replaceAll(/^\[(\d+)\/(\d+)\]/gm, (_, fn: string, n: string) => `[${numbers.of('fn', fn)}/${n}]`)
    const known = numbers
      .text(text)
      .replaceAll(/ - \d+\/(\d+): /g, ' - 1/$1: ')
      .replaceAll(/\d+ bytes of WebAssembly(?:, known)?/g, '? bytes of WebAssembly')
      .replaceAll(/(Joint|Inference|Forward|Backward) graph (\d+)/g, (_, what: string, n: string) => `${what} graph ${numbers.of('graph', n)}`)
    return `=== ${JSON.stringify(settings)}\n${known}`
  })
  await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot('../goldens/events/logs.txt')
})
