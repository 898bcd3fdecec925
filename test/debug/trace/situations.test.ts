// The report of a run in which twelve things were planted: each is found, and names its line.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { reset } from 'tensorfx/compile'
import { trace } from 'tensorfx/debug/trace'
import { removeFolder } from '../../helpers/folder.ts'
import { reportOf } from '../../../src/debug/report/report.ts'
import type { Report } from '../../../src/debug/report/data.ts'
import { plantedLines, runSituations } from '../../../scripts/pages/situations.mjs'

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-situations-'))
afterAll(() => {
  reset()
  removeFolder(folder)
})

function record(): Report {
  using traced = trace()
  runSituations(folder)
  traced.end()
  return reportOf(traced.records(), null)
}

const KINDS: Readonly<Record<string, string>> = {
  'recompile by shape': 'recompile',
  'recompile by dtype': 'recompile',
  attribute: 'recompile',
  'failing backend': 'failure',
}

describe('a report names the line of', () => {
  const report = record()
  it.each([...plantedLines()])('%s', (name, line) => {
    const kind = KINDS[name] ?? name
    const lines = report.findings.filter((finding) => finding.kind === kind).map(({ place }) => report.places[place]?.line)
    expect(lines).toContain(line)
  })

  it('and leads from each finding to its row, where the same line stands', () => {
    for (const { row, kind } of report.findings) expect([kind, report.rows[row] === undefined]).toEqual([kind, false])
    for (const { row, kind, place } of report.findings.filter(({ tab }) => tab === null))
      expect([kind, report.rows[row]?.place]).toEqual([kind, place])
  })
})
