// trace: what is recorded, how little of it when calls repeat, and what is never written.
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, reset } from 'tensorfx/compile'
import { readTraces, trace } from 'tensorfx/debug/trace'
import type { TraceRecord } from 'tensorfx/debug/trace'
import { removeFolder } from '../../helpers/folder.ts'
import { eventState } from '../../../src/events/index.ts'
import { reportOf } from '../../../src/debug/report/report.ts'

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-trace-'))
let folders = 0
const newFolder = (): string => join(folder, `run${folders++}`)
afterAll(() => {
  reset()
  removeFolder(folder)
})

const traced = (program: () => void, options: Parameters<typeof trace>[0] = {}): readonly TraceRecord[] => {
  using running = trace(options)
  program()
  running.end()
  return running.records()
}
const kindsOf = (records: readonly TraceRecord[]): Set<string> => new Set(records.map(({ kind }) => kind))

describe('trace', () => {
  it('begins with a header, and has the events of a compile in order', () => {
    const records = traced(() => compile((x: Tensor) => torch.relu(x).sum())(torch.ones([3])))
    expect(records[0]).toMatchObject({ kind: 'trace', version: 1, sources: true, pid: process.pid })
    expect(records.at(-1)?.kind).toBe('end')
    for (const kind of ['call', 'graph', 'pass', 'lower', 'fuse', 'memory', 'kernel', 'program', 'compiled', 'launches'])
      expect([kind, kindsOf(records).has(kind)]).toEqual([kind, true])
    const times = records.map((record) => ('time' in record ? record.time : -1)).filter((time) => time >= 0)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })

  it('counts calls that go as before: many steps are a few lines', () => {
    const step = compile((x: Tensor) => torch.tanh(x).mul(2))
    const x = torch.ones([4])
    const run = (steps: number) => (): void => {
      for (let i = 0; i < steps; i++) step(x)
    }
    step(x)
    const few = traced(run(10))
    const many = traced(run(400))
    // Counts are written once a second.
    expect(many.length).toBeLessThan(few.length + 40)
    expect(reportOf(few, null).totals).toMatchObject({ calls: 10, hits: 10 })
    const { totals, rows } = reportOf(many, null)
    expect([totals.calls, totals.hits]).toEqual([400, 400])
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(400)
    expect(rows.length).toBeLessThan(4)
  })

  it('stays small for a function that is never called twice alike', () => {
    const before = [config.recompileLimit, console.warn] as const
    config.recompileLimit = 1
    console.warn = () => {}
    try {
      const linesOf = (calls: number): number => {
        const grown = compile((x: Tensor) => torch.sin(x).sum())
        const records = traced(() => {
          for (let i = 1; i <= calls; i++) grown(torch.ones([i]))
        })
        expect(reportOf(records, null).totals.calls).toBe(calls)
        return records.filter(({ kind }) => kind !== 'launches' && kind !== 'again').length
      }
      // A hundred ways of a call are told apart.
      expect(linesOf(240)).toBe(linesOf(120))
    } finally {
      ;[config.recompileLimit, console.warn] = before
    }
  })

  it('records only the functions that it was given to', () => {
    using running = trace()
    const mine = compile((x: Tensor) => torch.exp(x), { trace: running })
    const other = compile((x: Tensor) => torch.cos(x))
    mine(torch.ones([2]))
    other(torch.ones([2]))
    running.end()
    const graphs = running.records().filter((record) => record.kind === 'graph')
    expect(graphs.length).toBe(1)
    expect(JSON.stringify(graphs)).toContain('torch.exp')
  })

  it('writes no values of tensors: not of arguments, parameters, results, or numbers that were read', () => {
    const secret = 8675309.25
    const model = new nn.Linear(2, 2)
    torch.noGrad(() => model.weight.fill_(secret))
    const dir = newFolder()
    {
      using _ = trace({ dir })
      const step = compile((x: Tensor) => {
        const y = model(x)
        const sum = y.sum().item()
        return sum > 1 ? y.mul(sum).sum() : y.sum()
      })
      step(torch.full([1, 2], secret)).backward()
      step(torch.full([1, 2], -secret)).backward()
    }
    const text = readdirSync(dir, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.includes('.'))
      .map((name) => readFileSync(join(dir, name), 'utf8'))
      .join('\n')
    expect(text.length).toBeGreaterThan(5000)
    // The numbers of the program: 8675309.25, and what it is multiplied to.
    expect(text).not.toMatch(/8675309|7526098|7\.52609|-?\d\.\d+e\+1[0-9]/)
  })

  it('has source lines only where they are allowed', () => {
    const run = (): void => void compile((x: Tensor) => torch.sinh(x))(torch.ones([2]))
    const codes = (records: readonly TraceRecord[]): number => (JSON.stringify(records).match(/"code":"[^"]*compile\(/g) ?? []).length
    expect(codes(traced(run, { sources: true }))).toBeGreaterThan(0)
    expect(codes(traced(run, { sources: false }))).toBe(0)
  })

  it('listens to nothing once it is over', () => {
    const before = eventState.on
    const running = trace()
    expect(eventState.on).toBe(true)
    running.end()
    running.end()
    expect(eventState.on).toBe(before)
  })

  it('stops writing events where it is as long as it may be, and goes on counting', () => {
    const records = traced(
      () => {
        const step = compile((x: Tensor) => torch.cosh(x))
        for (let i = 0; i < 20; i++) step(torch.ones([2]))
      },
      { maxBytes: 2000 },
    )
    expect(records.filter(({ kind }) => kind === 'full').length).toBe(1)
    expect(JSON.stringify(records).length).toBeLessThan(6000)
    expect(records.filter(({ kind }) => kind === 'again').length).toBeGreaterThan(0)
  })

  it('refuses wrong options, and folders that cannot be made', () => {
    expect(() => trace({ dir: 7 as never })).toThrow(/options\.dir.*path/s)
    expect(() => trace({ maxBytes: 0 })).toThrow(/maxBytes/)
    expect(() => trace({ sources: 'yes' as never })).toThrow(/sources/)
    writeFileSync(join(folder, 'file'), '')
    expect(() => trace({ dir: join(folder, 'file', 'deeper') })).toThrow(/cannot be written to the folder/)
    expect(() => compile((x: Tensor) => x, { trace: {} as never })).toThrow(/options\.trace/)
  })
})

describe('readTraces', () => {
  const dir = newFolder()
  {
    using _ = trace({ dir })
    compile((x: Tensor) => torch.softmax(torch.tanh(x.matmul(x)), 1).sum())(torch.ones([4, 4]))
  }
  const [file = ''] = readdirSync(dir).filter((name) => name.endsWith('.jsonl'))
  const text = readFileSync(join(dir, file), 'utf8')

  it('puts longer texts back in their places', () => {
    const [read] = readTraces(dir)
    const source = read?.records.flatMap((record) => (record.kind === 'program' ? [record.source] : []))[0]
    expect(source).toMatch(/^function compiled_graph_\d+\(inputs\)/)
    expect(text).toContain('"file":"artifacts/')
    expect(JSON.stringify(read?.records)).not.toContain('"file":"artifacts/')
  })

  it('reads a trace that was cut anywhere', () => {
    const cut = newFolder()
    mkdirSync(cut)
    const header = text.indexOf('\n') + 1
    for (let length = header; length < text.length; length += 997) {
      writeFileSync(join(cut, 'cut.jsonl'), text.slice(0, length))
      const [read] = readTraces(cut)
      expect(reportOf(read?.records ?? [], null)).toMatchObject({ isComplete: false })
    }
  })

  it('reads several processes, oldest first, and no files outside of the folder', () => {
    const second = newFolder()
    mkdirSync(second)
    const [head = ''] = text.split('\n')
    const later = JSON.stringify({ ...JSON.parse(head), started: '2030-01-01T00:00:00.000Z', pid: 2 })
    writeFileSync(join(second, 'a.jsonl'), `${later}\n`)
    writeFileSync(join(second, 'b.jsonl'), `${head}\n`)
    appendFileSync(
      join(second, 'b.jsonl'),
      `${JSON.stringify({ kind: 'program', id: 1, time: 1, name: 'p', source: { file: '../../etc/passwd' } })}\n`,
    )
    const traces = readTraces(second)
    expect(traces.map(({ header }) => header.started)).toEqual([traces[0]?.header.started, '2030-01-01T00:00:00.000Z'])
    expect(JSON.stringify(traces[0]?.records)).toContain('is missing')
  })

  it('says what is wrong with a folder', () => {
    expect(() => readTraces(join(folder, 'nowhere'))).toThrow(/there is no folder/)
    const empty = newFolder()
    mkdirSync(empty)
    expect(() => readTraces(empty)).toThrow(/TENSORFX_TRACE=/)
    writeFileSync(join(empty, 'a.jsonl'), 'hello\n')
    expect(() => readTraces(empty)).toThrow(/this is no trace/)
    writeFileSync(join(empty, 'a.jsonl'), `${JSON.stringify({ kind: 'trace', version: 99, tensorfx: '9.9.9' })}\n`)
    expect(() => readTraces(empty)).toThrow(/version 99.*9\.9\.9/s)
  })
})
