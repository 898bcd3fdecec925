// What users can reach does not change by accident: functions, class members and types of every entry are those of test/goldens/public-surface. Operators are
// not listed there: the operator table and its tests have them. After an intended change, TENSORFX_UPDATE_SURFACE=1 npx vitest run test/publicSurface.test.ts writes
// the golden; read the difference before you commit it, and say in the changelog what is gone or different.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { enableGrad, inferenceMode, isGradEnabled, noGrad, setGradEnabled, torch } from 'tensorfx'
import { temporaryFolder } from './helpers/folder.ts'
import { Declarations, entriesOf } from './helpers/declarations.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const work = temporaryFolder('tensorfx-surface-')
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
  // Not that of dist/: with other options in it, the next build would make everything anew.
  '--tsBuildInfoFile',
  join(work, '.tsbuildinfo'),
]
execFileSync(process.execPath, [tsc, ...flags])

const gradModes = { enableGrad, inferenceMode, isGradEnabled, noGrad, setGradEnabled }
const entries = entriesOf(root)
const declarations = new Declarations(
  work,
  entries.map(([, file]) => file),
  // Methods that operators add to Tensor.
  (path) => path.startsWith('ops/'),
)
const golden = (name: string): string => join(root, 'test/goldens/public-surface', `${name.replaceAll('/', '.')}.txt`)
/** A pass of the library comes with its file, so the goldens do not list it. */
const isPass = (line: string): boolean => /^(?:const \w+|function .*\)): Pass<GraphModule>$/.test(line)
/** Functions of torch.nn.functional and their options, and operators as constants. */
const isOperator = (line: string): boolean => /^(?:\w+ )?(?:F|functional)\.|^const [\w.]+: (?:OpFunction<|Op\[)/.test(line)
/** A function: declared as one, or a constant of a function type. */
const isFunction = (line: string): boolean => /^function |^const [\w.]+: (?:<.*>)?\(.*=>/.test(line)
/** The head of a class or interface, or a member of one. */
const isMember = (line: string): boolean => /^(?:abstract )?(?:class|interface) |^[\w.]+\.(?:\w+|\[)/.test(line)
/** What an entry exports: the name that a line declares. */
const nameOf = (line: string): string =>
  /^(?:type-only )?(?:abstract )?(?:class|interface|function|const|let|type|namespace) ([\w.]+)/.exec(line)?.[1] ?? ''

describe.each(entries)('%s', (name, file) => {
  const lines = declarations.surfaceOf(file).filter((line) => !isOperator(line) && !isPass(line))
  const before = existsSync(golden(name))
    ? readFileSync(golden(name), 'utf8')
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '')
    : []
  /** Lines of before that are no longer there: what they declared is gone or different. */
  const lost = before.filter((line) => !lines.includes(line))

  if (process.env['TENSORFX_UPDATE_SURFACE'] === '1') {
    it('is written to the golden', () => {
      writeFileSync(golden(name), `${lines.join('\n')}\n`)
      console.log([...lost.map((line) => `- ${line}`), ...lines.filter((line) => !before.includes(line)).map((line) => `+ ${line}`)].join('\n'))
    })
    return
  }

  it('test_function_back_compat: functions have the parameters and results that they had', () => {
    expect(lost.filter(isFunction)).toEqual([])
  })

  it('test_class_member_back_compat: classes and interfaces have the members that they had', () => {
    expect(lost.filter(isMember)).toEqual([])
  })

  it('test_public_api_surface: no name came or went', () => {
    const names = (all: readonly string[]): string[] => [...new Set(all.map(nameOf))].sort()
    expect(names(lines)).toEqual(names(before))
  })

  it('the golden is up to date', () => {
    expect(lines).toEqual(before)
  })

  it('the declarations tell what there is: each value that they name exists, and no other', async () => {
    const values = declarations
      .surfaceOf(file)
      .flatMap((line) => /^(?:abstract class|class|function|const|let|namespace) (\w+)(?![\w.])/.exec(line)?.[1] ?? [])
    // An entry that only installs something may need the built package.
    const actual: object = values.length === 0 ? {} : await import(name)
    expect([...new Set(values)].sort()).toEqual(Object.keys(actual).sort())
  })
})

describe('the front door', () => {
  const names = new Set(
    declarations
      .surfaceOf('index.d.ts')
      .map(nameOf)
      .filter((name) => name !== '' && !name.includes('.')),
  )

  it('has at most 60 names', () => {
    expect(names.size).toBeGreaterThan(20)
    expect(names.size).toBeLessThanOrEqual(60)
  })

  it('has no operators of its own: they are members of torch', () => {
    expect(
      [...names].filter((name) => name !== 'Tensor' && Object.hasOwn(torch, name) && !['nn', 'optim', ...Object.keys(gradModes)].includes(name)),
    ).toEqual([])
  })
})
