// Adding an operator touches two files, its own and that of its cases: the fixture below is added to a copy of src. What it leaves out is asked for by name.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { findOperators, generate } from '../../scripts/generateOps.mjs'
import { makeOp } from '../../src/ops/index.ts'
import type { OpFunction, UntypedDeclaration } from '../../src/ops/index.ts'
import { check } from '../ops/checkValues.ts'
import { missingInDoc } from '../ops/docDemands.ts'
import { checkGivenGradient, missingCases } from '../ops/gradientCases.ts'
import type { ValueCase, ValueCases } from '../ops/valueCases.ts'

/** The operator: steps that gradients pass straight through. */
const OPERATOR = `// Steps, straight through which gradients pass.
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { div, mul } from './arithmetic.ts'
import { round } from './unary.ts'

/**
 * The nearest multiple of \`size\`, elementwise; its gradient is that of \`self\`. PyTorch has no such operator.
 *
 * Shape: that of \`self\`.
 *
 * @throws ArgumentError if \`self\` is not a Tensor.
 * @example torch.halfSteps(torch.tensor([0.3, 1.2])).toArray() // [0.5, 1]
 */
export const halfSteps: Op['halfSteps'] = defineOp({
  schema: 'half_steps(Tensor self, float size=0.5) -> Tensor',
  method: true,
  vmap: 'elementwise',
  onnx: { none: 'it is a fixture of a test' },
  autocast: 'as is',
  meta: (self) => ({ shape: self.sizes, dtype: self.dtype }),
  kernel: (self, size) => mul(round(div(self, size)), size),
  derivative: ([g]) => [g, null],
})
`
const CASES = `// Steps.
import { t } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

export default {
  'torch.half_steps': [
    { args: [t([0.3, 1.2, -0.6])], gives: (x: Plain) => x.map((v) => Math.round(2 * v) / 2), gradient: (x: Plain) => x.map(() => 1) },
  ],
} satisfies ValueCases
`

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, '.tmp-tests'), { recursive: true })
/** A copy of the sources, and the fixture as modules that import those of this process. */
const copy = mkdtempSync(join(root, '.tmp-tests/operator-'))
const place = 'src/ops/pointwise/halfSteps.ts'
afterAll(() => removeFolder(copy))

/** The text of a file of the folder `from` as it imports the same files from elsewhere. */
const importing = (text: string, from: string): string =>
  text.replaceAll(/from '(\.\.?\/[^']*)'/g, (_, path: string) => `from '${new URL(path, `file://${root}${from}/`).pathname}'`)

async function loaded(name: string, text: string, from: string): Promise<Readonly<Record<string, unknown>>> {
  const path = join(copy, name)
  writeFileSync(path, importing(text, from))
  return (await import(path)) as Readonly<Record<string, unknown>>
}

/** The declaration without the line of a field. */
const without = (field: string): string => OPERATOR.replace(new RegExp(`^ {2}${field}: .*\\n`, 'm'), '')

beforeAll(() => {
  cpSync(join(root, 'src'), join(copy, 'src'), { recursive: true })
  mkdirSync(join(copy, 'lint-rules'))
  writeFileSync(join(copy, place), OPERATOR)
  generate(copy)
}, 60_000)

describe('the operator in a file of its own', () => {
  const filesOf = (folder: string): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const written = (name: string): string => readFileSync(join(copy, 'src/ops/generated', name), 'utf8')

  it('needs no other file of the sources to change', () => {
    const before = new Set(filesOf(join(root, 'src')))
    const changed = filesOf(join(copy, 'src')).filter(
      (name) => !before.has(name) || readFileSync(join(root, 'src', name), 'utf8') !== readFileSync(join(copy, 'src', name), 'utf8'),
    )
    expect(changed.filter((name) => !name.startsWith('ops/generated/'))).toEqual(['ops/pointwise/halfSteps.ts'])
  })

  it('has its function, its method, their types, and its name in the lint rules', () => {
    expect(written('torch.ts')).toContain("export { halfSteps } from '../pointwise/halfSteps.ts'")
    expect(written('all.ts')).toMatch(/allOperators: .*\bhalfSteps\b/)
    expect(written('signatures.ts')).toContain('readonly halfSteps: OpFunction<(self: Tensor, size?: number | { readonly size?: number }) => Tensor>')
    expect(written('methods.ts')).toContain('    halfSteps(size?: number | { readonly size?: number }): Tensor')
    expect(readFileSync(join(copy, 'lint-rules/vocabulary.generated.js'), 'utf8')).toMatch(/METHODS = ".*\bhalfSteps\b/)
  })

  it('computes what its cases say, and has the gradient that they give', async () => {
    const { halfSteps } = (await loaded('halfSteps.ts', OPERATOR, 'src/ops/pointwise')) as { halfSteps: OpFunction }
    const { default: cases } = (await loaded('cases.ts', CASES, 'test/ops/values')) as { default: ValueCases }
    const own = cases['torch.half_steps'] ?? []
    expect(missingCases(halfSteps.op, own)).toBeNull()
    for (const one of own) {
      for (const float of ['float32', 'float64', 'float16'] as const) check(halfSteps.op, one, { float })
      checkGivenGradient(halfSteps.op, one, true)
    }
  })

  it('is refused if it computes something else, or has another gradient', async () => {
    const { default: cases } = (await loaded('cases.ts', CASES, 'test/ops/values')) as { default: ValueCases }
    const [one] = cases['torch.half_steps'] as readonly [ValueCase]
    const wrong = (await loaded('wrong.ts', OPERATOR.replace('mul(round', 'div(round'), 'src/ops/pointwise')) as { halfSteps: OpFunction }
    expect(() => check(wrong.halfSteps.op, one, {})).toThrow('[0]: 2 instead of')
    const flat = (await loaded('flat.ts', OPERATOR.replace('=> [g, null]', '=> [mul(g, 0), null]'), 'src/ops/pointwise')) as { halfSteps: OpFunction }
    expect(() => checkGivenGradient(flat.halfSteps.op, one, true)).toThrow('gradient 0, element 0: 0 instead of 1')
  })
})

describe('what it leaves out is named', () => {
  it('by types', () => {
    const fields = ['vmap', 'onnx', 'autocast']
    for (const field of fields) writeFileSync(join(copy, `src/ops/pointwise/without${field}.ts`), without(field))
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { rootDir: copy, typeRoots: [join(root, 'node_modules/@types')] },
      files: [place, ...fields.map((field) => `src/ops/pointwise/without${field}.ts`)],
      include: [],
    }
    writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(config))
    let output = ''
    try {
      execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', copy, '--pretty', 'false'], { encoding: 'utf8' })
    } catch (error) {
      output = (error as { readonly stdout: string }).stdout
    }
    // The other rooms, which declare more methods of Tensor, are not part of this program.
    const errors = output.split(/\n(?=\S)/).filter((text) => /(?:halfSteps|without\w+)\.ts\(.*error/.test(text))
    expect(errors.map((text) => /(\w+)\.ts\(/.exec(text)?.[1])).toEqual(fields.map((field) => `without${field}`).toSorted())
    for (const field of fields) expect(errors.find((text) => text.includes(`without${field}.ts`))).toContain(`Property '${field}' is missing`)
  })

  it.each(['vmap', 'onnx', 'autocast'])('by defineOp: %s', async (field) => {
    const message = await loaded(`runtime${field}.ts`, without(field), 'src/ops/pointwise').then(
      () => '',
      (error: unknown) => String(error),
    )
    expect(message).toContain(`operator torch.half_steps declares no \`${field}\`: write `)
  })

  it('by defineOp: meta', async () => {
    await expect(loaded('runtimemeta.ts', without('meta'), 'src/ops/pointwise')).rejects.toThrow('operator torch.half_steps declares no meta')
  })

  it('but not of operators that decompose, compute element by element, or belong to programs', () => {
    const mine: UntypedDeclaration = { schema: 'f(Tensor self) -> Tensor', meta: () => ({ shape: [], dtype: 'float32' }) }
    expect(() => makeOp({ ...mine, namespace: 'mine' })).not.toThrow()
    expect(() => makeOp({ ...mine, namespace: 'torch.ops.mine' })).not.toThrow()
    expect(() => makeOp({ ...mine, namespace: 'torch.special' })).toThrow('declares no `vmap`')
    expect(() => makeOp({ schema: 'f(Tensor self) -> Tensor', decompose: (self) => self as never })).not.toThrow()
  })

  it('in its doc comment', () => {
    const docOf = (text: string): string => {
      writeFileSync(join(copy, place), text)
      const found = findOperators(join(copy, 'src/ops')).find(({ name }) => name === 'halfSteps')
      return (found?.doc ?? '').replaceAll(/^ *\* ?/gm, '').trim()
    }
    expect(missingInDoc(docOf(OPERATOR))).toEqual([])
    const rows: readonly (readonly [RegExp, RegExp])[] = [
      [/PyTorch has no such operator\./, /its name in PyTorch/],
      [/^ \* Shape: .*\n/m, /Shape: …/],
      [/^ \* @throws .*\n/m, /@throws/],
      [/^ \* @example .*\n/m, /@example/],
    ]
    for (const [part, named] of rows) expect(missingInDoc(docOf(OPERATOR.replace(part, '')))).toEqual([expect.stringMatching(named)])
  })

  it('in its cases', async () => {
    const { halfSteps } = (await loaded('halfSteps.ts', OPERATOR, 'src/ops/pointwise')) as { halfSteps: OpFunction }
    expect(missingCases(halfSteps.op, [])).toContain('torch.half_steps has no value case')
    const { default: cases } = (await loaded('cases.ts', CASES, 'test/ops/values')) as { default: ValueCases }
    const [one] = cases['torch.half_steps'] as readonly [ValueCase]
    const undifferentiable = (await loaded('flatter.ts', without('derivative'), 'src/ops/pointwise')) as { halfSteps: OpFunction }
    const { gradient: _, ...silent } = one
    expect(missingCases(undifferentiable.halfSteps.op, [silent])).toContain('give `gradient`, or say with `noGradient`')
    expect(missingCases(undifferentiable.halfSteps.op, [{ ...silent, noGradient: 'a fixture' }])).toBeNull()
  })
})
