// setLogs and TENSORFX_LOGS: which names there are, and PyTorch's words.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ArgumentError, compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { setLogSink, setLogs } from 'tensorfx/debug'
import { eventState } from '../../src/events/index.ts'
import { setLogsFrom } from '../../src/events/logs.ts'
import { distUrl, folderWith, runScript } from '../debug/processes.ts'

let lines: string[] = []
beforeEach(() => {
  lines = []
  setLogSink((level, message) => lines.push(level === 'info' ? message : `${level}: ${message}`))
})
afterEach(() => {
  setLogs()
  setLogSink(null)
})

const here = '/test/events/logs.test.ts'
/** What was printed, without compile ids, the artifact and the folder. */
const printed = (): string[] =>
  lines
    .flatMap((line) => line.split('\n'))
    .map((line) => line.replace(/^\[\d+\/\d+\] /, '').replaceAll(/(?:file:\/\/)?[\w./-]*\/test\/events\/logs\.test\.ts/g, here))
const ones = (...shape: number[]): Tensor => torch.ones(shape)

describe('graph_breaks', () => {
  it('tells where, why and how the program got there; a place that is known only where', () => {
    setLogs({ graph_breaks: true })
    const read = (x: Tensor): number => x.sum().item()
    const f = compile((x: Tensor) => x.mul(read(x)).add(1))
    f(ones(2))
    f(ones(2))
    f(ones(3))
    const text = printed().map((line) => line.replaceAll(/(line |ts:)\d+/g, '$1N'))
    expect(text).toEqual([
      `[__graph_breaks] Graph break in user code at ${here}:N`,
      '[__graph_breaks] Reason: the value of a tensor is read (item(), toArray(), printing)',
      '[__graph_breaks] User code traceback:',
      ...text.slice(3, -3),
      `[__graph_breaks]   File "${here}", line N, in read`,
      '[__graph_breaks]     const read = (x: Tensor): number => x.sum().item()',
      `[__graph_breaks] Graph break (details suppressed) in user code at ${here}:N`,
    ])
  })
})

describe('recompiles', () => {
  it('tells the function, the line, and what differed, under the id of the recording that did not fit', () => {
    setLogs({ recompiles: true })
    const f = compile(function scaled(x: Tensor, how: string) {
      return how === 'sin' ? x.sin() : x.cos()
    })
    f(ones(2), 'sin')
    f(ones(2), 'cos')
    f(ones(3), 'sin')
    const text = lines
      .join('\n')
      .replaceAll(/ts:\d+/g, 'ts:N')
      .replaceAll(/\[\d+\/(\d)\]/g, '[f/$1]')
      .replaceAll(/- \d+\/(\d)/g, '- f/$1')
      .replaceAll(/\S*\/test\/events/g, '/test/events')
    expect(text.split('\n')).toEqual([
      `[f/1] [__recompiles] Recompiling function scaled in ${here}:N`,
      '[f/1] [__recompiles]     triggered by the following guard failure(s):',
      '[f/1] [__recompiles]     - f/0: expected torch.sin, got torch.cos. expected torch.sin, actual torch.cos',
      `[f/2] [__recompiles] Recompiling function scaled in ${here}:N`,
      '[f/2] [__recompiles]     triggered by the following guard failure(s):',
      '[f/2] [__recompiles]     - f/1: arguments of other shapes, dtypes or structure: float32[3], string. expected float32[2], string, actual float32[3], string',
    ])
  })
})

describe('components', () => {
  it('dynamo tells its steps in PyTorch’s words', () => {
    setLogs({ dynamo: 'info' })
    compile(function stepped(x: Tensor) {
      return x.sin()
    })(ones(2))
    expect(printed().map((line) => line.replace(/ts:\d+/, 'ts:N').replace(/fn_\d+/, 'fn_N'))).toEqual([
      `[__dynamo] Step 1: torchdynamo start tracing stepped ${here}:N`,
      '[__dynamo] Step 2: calling compiler function for __compiled_fn_N',
      '[__dynamo] Step 2: done compiler function inductor for __compiled_fn_N',
      '[__dynamo] Step 1: torchdynamo done tracing stepped (RETURN_VALUE)',
    ])
  })

  it('+dynamo tells why a graph ends, what is inlined, and line by line what is recorded', () => {
    setLogsFrom('+dynamo')
    const helper = (x: Tensor): Tensor => x.sin()
    compile((x: Tensor) => {
      torch.relu(x).sum().item()
      return helper(x)
    })(ones(2))
    const text = printed().join('\n')
    expect(text).toMatch(
      /\[__dynamo\] COMPILING GRAPH due to GraphCompileReason\(reason='the value of a tensor is read .*', user_stack=\[<FrameSummary file .*line \d+ in .*>\], graph_break=True\)/,
    )
    expect(text).toContain("[__dynamo] COMPILING GRAPH due to GraphCompileReason(reason='return', user_stack=[], graph_break=False)")
    expect(text).toMatch(/\[__dynamo\] INLINING function helper from \/test\/events\/logs.test.ts:\d+/)
    expect(text).toMatch(/\[__trace\] TRACE starts_line \/test\/events\/logs.test.ts:\d+ in helper\n\[__trace\]     const helper = /)
    expect(text).toContain('[__trace_call] TRACE FX call torch.sin(float32[2]) from')
    expect(text).toContain('[__graph_breaks] Graph break in user code at')
    expect(text).not.toContain('[__fusion]')
  })

  it('tells limits, and failures at every level', () => {
    setLogsFrom('-inductor,dynamo')
    const f = compile((x: Tensor) => torch.relu(x), { backend: 'relu_compile_error_TESTING_ONLY' })
    expect(() => f(ones(2))).toThrow('relu found in graph')
    expect(printed().at(-1)).toBe('[__failures] relu_compile_error_TESTING_ONLY failed (compile): TFX_RELU_COMPILE: relu found in graph')
    setLogs({ dynamo: 'info' })
    lines = []
    const g = compile((x: Tensor) => x.sin())
    withConfig({ recompileLimit: 0 }, () => [g(ones(2)), g(ones(3))])
    expect(printed().at(-1)).toMatch(/^\[__dynamo\] hit recompileLimit: function 'anonymous': arguments of other shapes/)
  })
})

describe('perf_hints', () => {
  it('tell what was not fused, what is left to eager kernels, and what is copied', () => {
    setLogs({ perf_hints: true })
    compile((x: Tensor, y: Tensor) => {
      x.copy_(torch.cumsum(y.sin(), 0))
      return x.sum()
    })(ones(4, 4), ones(4, 4))
    const text = printed().join('\n')
    expect(text).toMatch(/perf hint: cumsum is left to the eager kernel of torch.cumsum: it has no lowering/)
    expect(text).toMatch(/perf hint: buf\d+ \(sin\) and buf\d+_0 \(cumsum\) are not fused: an eager kernel is called on its own/)
    expect(text).toMatch(/perf hint: output \d+ is computed in memory of its own, and copied to the input that it overwrites/)
  })
})

describe('settings', () => {
  it('replace the ones before; none turns all off, and nobody listens any more', () => {
    setLogs({ graph_code: true })
    expect(eventState.on).toBe(true)
    setLogs({ graphBreaks: true, graph_code: false } as object)
    compile((x: Tensor) => x.sin())(ones(2))
    expect(lines).toEqual([])
    setLogs()
    expect(eventState.on).toBe(false)
    setLogsFrom('graph_sizes, -graph_sizes,')
    expect(eventState.on).toBe(false)
  })

  it('know PyTorch’s other names, and names in camelCase', () => {
    setLogsFrom('trace_source')
    compile((x: Tensor) => x.sin())(ones(2))
    expect(printed()[0]).toContain('[__trace] TRACE starts_line')
    lines = []
    setLogs({ graphSizes: true } as object)
    compile((x: Tensor) => x.sum())(ones(2, 3))
    expect(printed().slice(2)).toEqual(['[__graph_sizes] l_x_: (2, 3)', '[__graph_sizes] sum_1: ()'])
  })

  it('that are unknown are errors with the nearest name', () => {
    const absurd = (settings: unknown): unknown => Reflect.apply(setLogs, undefined, [settings])
    expect(() => setLogsFrom('graph_brakes')).toThrow(
      /TENSORFX_LOGS=graph_brakes: there is no log 'graph_brakes'\. Did you mean 'graph_breaks'\? Known are all, dynamo/,
    )
    expect(() => setLogsFrom('+xyz')).toThrow(/there is no log 'xyz'\. Known are/)
    expect(() => absurd({ fusions: true })).toThrow(/setLogs: there is no log 'fusions'\. Did you mean 'fusion'\?/)
    expect(() => absurd({ dynamo_debug: true })).toThrow(ArgumentError)
    expect(() => absurd({ fusion: 1 })).toThrow('setLogs: fusion must be true or false, got 1.')
    expect(() => absurd({ dynamo: true })).toThrow("setLogs: dynamo must be 'debug', 'info' or 'error', got true.")
    for (const wrong of [null, 3, ['fusion'], 'fusion']) expect(() => absurd(wrong)).toThrow(/'settings' must be an object such as/)
    expect(eventState.on).toBe(false)
  })
})

describe('the environment', () => {
  const program = `import { compile, torch } from ${JSON.stringify(distUrl('index.js'))}
compile((x) => x.mul(x.sum().item()))(torch.ones([2]))
console.log('done')`

  it('logs to standard error from the start', async () => {
    const { how, output } = await runScript(folderWith({ 'a.mjs': program }), 'a.mjs', [], { env: { TENSORFX_LOGS: 'graph_breaks' } })
    expect(how).toBe('exit 0')
    expect(output).toMatch(/\[1\/0\] \[__graph_breaks\] Graph break in user code at .*a\.mjs:2\n/)
    expect(output).toContain('done')
  })

  it('names that it does not know are errors', async () => {
    const { how, output } = await runScript(folderWith({ 'a.mjs': program }), 'a.mjs', [], { env: { TENSORFX_LOGS: 'graphs' } })
    expect(how).toBe('exit 1')
    expect(output).toContain("TENSORFX_LOGS=graphs: there is no log 'graphs'. Did you mean 'graph'?")
  })
})
