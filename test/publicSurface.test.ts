// What users can reach does not change by accident: functions, class members and types of every entry are those of test/goldens/public-surface, with their types. After a change that is
// meant, TENSORFX_UPDATE_SURFACE=1 npx vitest run test/publicSurface.test.ts writes it there: read the difference before you keep it, and say in the changelog what is gone or different.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { Declarations, entriesOf } from './helpers/declarations.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const work = mkdtempSync(join(tmpdir(), 'tensorfx-surface-'))
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const flags = [
  '-p',
  join(root, 'tsconfig.build.json'),
  '--emitDeclarationOnly',
  '--declarationMap',
  'false',
  '--sourceMap',
  'false',
  '--outDir',
  work,
]
execFileSync(process.execPath, [tsc, ...flags])

const entries = entriesOf(root)
const declarations = new Declarations(
  work,
  entries.map(([, file]) => file),
)
const golden = (name: string): string => join(root, 'test/goldens/public-surface', `${name.replaceAll('/', '.')}.txt`)
const isFunction = (line: string): boolean => line.startsWith('function ')
const isMember = (line: string): boolean => /^(?:abstract )?(?:class|interface) |^[\w.]+\.(?:\w+|\[)/.test(line)

afterAll(() => rmSync(work, { recursive: true }))

describe.each(entries)('%s', (name, file) => {
  const lines = declarations.surfaceOf(file)
  if (process.env['TENSORFX_UPDATE_SURFACE'] === '1') writeFileSync(golden(name), `${lines.join('\n')}\n`)
  const before = existsSync(golden(name)) ? readFileSync(golden(name), 'utf8').trimEnd().split('\n') : []

  it('test_function_back_compat: functions have the parameters and results that they had', () => {
    expect(lines.filter(isFunction)).toEqual(before.filter(isFunction))
  })

  it('test_class_member_back_compat: classes and interfaces have the members that they had', () => {
    expect(lines.filter(isMember)).toEqual(before.filter(isMember))
  })

  it('test_public_api_surface: nothing else came, went or changed; what is meant, TENSORFX_UPDATE_SURFACE=1 writes', () => {
    expect(lines).toEqual(before)
  })

  it('the declarations tell what there is: each value that they name exists, and no other', async () => {
    const actual = (await import(name)) as Readonly<Record<string, unknown>>
    const values = new Set(
      lines.flatMap((line) => /^(?:abstract class|class|function|const|let|namespace) (\w+)(?![\w.])/.exec(line)?.[1] ?? []).filter((n) => n !== ''),
    )
    expect([...values].sort()).toEqual(Object.keys(actual).sort())
  })
})
