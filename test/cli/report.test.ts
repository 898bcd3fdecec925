// tensorfx report: what it prints, the page and the trace for Chrome that it writes, and what is wrong with folders.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { reset } from 'tensorfx/compile'
import { reportPage, downloadReport, readTraces, trace } from 'tensorfx/debug/trace'
import { removeFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-report-'))
afterAll(() => {
  reset()
  removeFolder(folder)
})

const run = (...words: string[]) => runTensorfx(['report', ...words], { print: () => {}, note: () => {} })

/** A traced run with one break for each call of `times`, on the line that it returns. */
function traced(name: string, times: number): string {
  const dir = join(folder, name)
  using _ = trace({ dir })
  for (let i = 0; i < times; i++) {
    compile((x: Tensor) => {
      const y = torch.relu(x)
      return y.sum().item() > 0 ? y.mul(2) : y
    })(torch.ones([3, i + 1]))
  }
  return dir
}

describe('tensorfx report', () => {
  const dir = traced('one', 1)

  it('prints what was found with its line, and writes the page', async () => {
    const { text, code } = await run(dir)
    expect(code).toBe(0)
    expect(text).toMatch(/1 calls, 0 of them hits; 2 graphs compiled in \d+ ms; 1 breaks/)
    expect(text).toMatch(/break +\S*report\.test\.ts:\d+ +graph break: the value of a tensor is read/)
    const page = readFileSync(join(dir, 'report.html'), 'utf8')
    expect(page).toMatch(/^<!doctype html>/)
    expect(page).not.toMatch(/<script[^>]* src=|<link /)
    expect(text).toContain(`Wrote ${join(dir, 'report.html')}`)
  })

  it('has the same as JSON, with sums and places', async () => {
    const { text } = await run(dir, '--json')
    const { runs, page } = JSON.parse(text)
    expect(page).toBe(join(dir, 'report.html'))
    expect(runs[0].totals).toMatchObject({ calls: 1, graphs: 2, breaks: 1, recompiles: 0 })
    expect(runs[0].findings[0]).toMatchObject({ kind: 'break', file: expect.stringContaining('report.test.ts'), line: expect.any(Number) })
  })

  it('compares two runs', async () => {
    const out = join(folder, 'diff.html')
    const { text, data } = await run(dir, '--diff', traced('two', 2), '--out', out)
    expect(text).toContain('2 calls')
    expect(data).toMatchObject({ runs: [{ totals: { calls: 1 } }, { totals: { calls: 2 } }] })
    expect(readFileSync(out, 'utf8')).toContain('compared with')
  })

  it('writes slices that nest and marks for Chrome', async () => {
    await run(dir, '--chrome')
    const { traceEvents } = JSON.parse(readFileSync(join(dir, 'trace.json'), 'utf8'))
    const of = (cat: string): { ph: string; ts: number; dur: number }[] => traceEvents.filter((entry: { cat: string }) => entry.cat === cat)
    const [call] = of('call')
    expect([of('call').length, of('compile').length, of('break').length]).toEqual([1, 2, 1])
    for (const inner of [...of('compile'), ...of('pass')]) {
      expect(inner.ts).toBeGreaterThanOrEqual(call?.ts ?? Infinity)
      expect(inner.ts + inner.dur).toBeLessThanOrEqual((call?.ts ?? 0) + (call?.dur ?? 0) + 1)
    }
    for (const entry of traceEvents) expect(entry.ph === 'X' ? entry.dur >= 0 : entry.s).toBeTruthy()
  })

  it('knows processes by their numbers', async () => {
    expect((await run(dir, '--process', String(process.pid))).code).toBe(0)
    const { text, code } = await run(dir, '--process', '1')
    expect([code, text]).toEqual([2, expect.stringContaining(`Traced were ${process.pid}`)])
  })

  it.each([
    ['no folder', ['nowhere'], /there is no folder 'nowhere'/],
    ['two folders', ['a', 'b'], /expected one folder/],
    ['an unknown option', ['a', '--chrom'], /--chrome/],
    ['a page that cannot be written', [dir, '--out', join(folder, 'no', 'such', 'page.html')], /cannot be written/],
  ])('says what is wrong with %s', async (_name, words, message) => {
    const { text, code } = await run(...words)
    expect([code, text]).toEqual([2, expect.stringMatching(message)])
  })

  it('says that a folder holds no trace, or a broken one', async () => {
    const broken = join(folder, 'broken')
    mkdirSync(broken)
    expect((await run(broken)).text).toMatch(/has no trace/)
    writeFileSync(join(broken, 'a.jsonl'), '{"kind":')
    expect(await run(broken)).toMatchObject({ code: 2, text: expect.stringMatching(/this is no trace/) })
    expect(existsSync(join(broken, 'report.html'))).toBe(false)
  })

  it('has its help', async () => {
    const { text, code } = await run('--help')
    expect(code).toBe(0)
    for (const word of ['TENSORFX_TRACE', '--diff', '--chrome', '--open', '--process', '--json']) expect(text).toContain(word)
  })
})

describe('reportPage', () => {
  it('shows a trace in memory, and one that was read, and cannot be ended by texts of the program', () => {
    using running = trace()
    compile((x: Tensor) => torch.relu(x))(torch.ones([2]))
    expect(reportPage(running, { peak: null })).toContain('compiled __compiled_fn_')
    const [read] = readTraces(join(folder, 'one'))
    if (read === undefined) throw new Error('there is no trace')
    expect(reportPage(read, { before: read })).toContain('compared with')
    const hostile = read.records.map((record) => (record.kind === 'break' ? { ...record, reason: '</script><script>alert(1)</script>' } : record))
    expect(reportPage({ ...read, records: hostile }, { peak: null })).not.toContain('<script>alert(1)')
  })

  it('refuses what is no trace', () => {
    expect(() => reportPage({} as never)).toThrow(/expected a trace/)
    expect(() => reportPage({ file: '', header: {} as never, records: [] }, { peak: null })).toThrow(/header/)
    expect(() => downloadReport({ name: 'a.html' })).toThrow(/there is no page here/)
  })
})
