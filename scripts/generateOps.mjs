// npm run generate: writes the index of operators from their declarations in src/ops. It reads source text only, so it needs neither a build nor a network,
// and runs before build, typecheck, lint and tests. What it writes is not committed.
//
// An operator is an exported constant that calls defineOp with an object literal:
//
//     export const relu: Op['relu'] = defineOp({
//       schema: 'relu(Tensor self) -> Tensor',
//       method: true,
//
// Its function type and its method follow from the schema. An operator that can be called in more ways than that is declared as `OpFunction<...>` instead.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ALIASES, groupsIn } from './operatorGroups.mjs'
import { camelCase } from './ops/signatures.mjs'
import { methodsText, signaturesText } from './ops/types.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

const DECLARATION =
  /^export const (\w+):\s*(?:Op\['(\w+)'\]|OpFunction<((?:(?!^export const|= defineOp).)*?)>)\s*=\s*defineOp\(\{\n\s*schema:\s*(['"`])(.*?) -> (.*?)\4,\n(.*?)^\s*\}\)$/gms
const TYPE = /^export (?:interface|type) (\w+)/gm

/** The declarations of one file of `ops`. Throws if a call of defineOp does not have the form above. */
function operatorsOf(ops, file, text) {
  const texts = new Map([...text.matchAll(/^const (\w+) = '(.*)'$/gm)].map(([, name, value]) => [name, value]))
  const found = [...text.matchAll(DECLARATION)].map(([whole, constant, key, type, , head, returns, rest]) => {
    if (key !== undefined && key !== constant)
      throw new Error(`${relative(ops, file)}: ${constant} is declared as Op['${key}']. Write Op['${constant}'].`)
    return {
      file,
      constant,
      type: type?.trim() ?? null,
      schema: `${head} -> ${returns}`.replaceAll(/\$\{(\w+)\}/g, (_, name) => texts.get(name)),
      pointwise: /^\s*(?:pointwise|functional)[:,]/m.test(rest),
      numberFirst: rest.includes("'numberFirst'"),
      name: camelCase(/^\w+/.exec(head)[0]),
      namespace: /^\s*namespace: '([\w.]+)',$/m.exec(rest)?.[1] ?? 'torch',
      method: /^\s*method: true,$/m.test(rest),
      inPlace: /^\s*inPlace: '(\w+)',$/m.exec(rest)?.[1] ?? null,
      returnsList: returns.startsWith('(') || returns.endsWith('[]'),
      doc: docBefore(text, whole),
    }
  })
  const calls = text.match(/= defineOp\(|=\s+defineOp\(/g)?.length ?? 0
  if (found.length !== calls)
    throw new Error(
      `${relative(ops, file)}: ${calls} calls of defineOp, but ${found.length} that can be read. Write each as ` +
        "`export const name: Op['name'] = defineOp({ schema: '...', ... })`, with the schema first and `namespace` and `method` as literals.",
    )
  return found
}

/** The doc comment that ends right before `declaration`. */
function docBefore(text, declaration) {
  const before = text.slice(0, text.indexOf(declaration))
  return /\/\*\*((?:(?!\*\/).)*)\*\/\s*$/s.exec(before)?.[1] ?? ''
}

/** All operators of `ops`, in the order of files and of their declarations there. */
export function findOperators(ops = join(root, 'src/ops')) {
  return sourceFiles(ops).flatMap((file) => operatorsOf(ops, file, readFileSync(file, 'utf8')))
}

const sourceFiles = (ops) =>
  readdirSync(ops, { recursive: true })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('generated') && name !== 'define/defineOp.ts')
    .sort()
    .map((name) => join(ops, name))

/** Import paths from the generated folder. */
const pathsIn = (ops) => (file) => `../${relative(ops, file).replaceAll('\\', '/')}`

/** Export statements, one per file. `nameOf` gives the public name of an operator, `pathTo` the path of a file. */
function exportsOf(operators, pathTo, nameOf) {
  const files = [...new Set(operators.map((op) => op.file))]
  return files.flatMap((file) => {
    const names = operators
      .filter((op) => op.file === file)
      .map((op) => (op.constant === nameOf(op) ? op.constant : `${op.constant} as ${nameOf(op)}`))
    const types = [...readFileSync(file, 'utf8').matchAll(TYPE)].map(([, name]) => name)
    return [
      `export { ${names.join(', ')} } from '${pathTo(file)}'`,
      ...(types.length === 0 ? [] : [`export type { ${types.join(', ')} } from '${pathTo(file)}'`]),
    ]
  })
}

function checkUnique(operators, what, nameOf) {
  const seen = new Map()
  for (const op of operators) {
    const other = seen.get(nameOf(op))
    if (other !== undefined) throw new Error(`two operators have the ${what} '${nameOf(op)}': in ${other.file} and in ${op.file}. Rename one.`)
    seen.set(nameOf(op), op)
  }
}

/** Writes a file, unless it has this text already: watchers and other processes then see no change. */
function write(file, lines) {
  const text = `// Written by scripts/generateOps.mjs; not committed.\n${lines.join('\n')}\n`
  let before = null
  try {
    before = readFileSync(file, 'utf8')
  } catch {
    mkdirSync(join(file, '..'), { recursive: true })
  }
  if (before !== text) writeFileSync(file, text)
}

/** The in-place forms, by the rule of src/ops/names/inPlaceForms.ts, as operators of the file that is generated for them. */
const inPlaceForms = (ops, operators) =>
  operators.flatMap((of) => {
    const { constant, name, namespace, inPlace, file } = of
    return inPlace === null
      ? []
      : [
          {
            of,
            file: join(ops, 'generated/inPlace.ts'),
            source: file,
            functional: constant,
            constant: `${constant}_`,
            name: `${name}_`,
            namespace: inPlace === 'function' ? namespace : 'torch.Tensor',
            method: namespace === 'torch',
            returnsList: false,
          },
        ]
  })

/** The text of the file of in-place forms. */
function inPlaceText(forms, pathTo) {
  const sources = [...new Set(forms.map((form) => form.source))]
  return [
    '// The in-place forms of operators.',
    "import { inPlaceOf } from '../names/inPlaceForms.ts'",
    "import type { InPlaceForm } from '../names/inPlaceForms.ts'",
    ...sources.map((source) => {
      const names = forms.filter((form) => form.source === source).map((form) => form.functional)
      return `import { ${names.join(', ')} } from '${pathTo(source)}'`
    }),
    '',
    ...forms.flatMap(({ functional, constant, namespace, method }) => [
      `/** {@link ${functional}}, written into \`self\`. */`,
      `export const ${constant}: InPlaceForm<typeof ${functional}> = /* @__PURE__ */ inPlaceOf(${functional}, '${namespace}', ${method})`,
    ]),
  ]
}

/** The methods that are other names of operators: those of the tables of src/ops/names/aliases.ts that give them another name, with the operators as `of`. */
function aliasesOf(ops, operators) {
  const text = readFileSync(join(ops, 'names/aliases.ts'), 'utf8')
  return ['OF_TORCH', 'OF_TENSORS'].flatMap((table) => {
    const [, rows] = new RegExp(`^const ${table} = \\{\\n(.*?)^\\}`, 'ms').exec(text)
    return [...rows.matchAll(/^ {2}(\w+): (\w+),$/gm)].flatMap(([, name, constant]) => {
      const of = operators.find((op) => op.constant === constant)
      return of.method ? [{ ...of, name, of: of.of ?? of }] : []
    })
  })
}

const words = (operators) => JSON.stringify(operators.map((op) => op.name).join(' '))

/** The text of the list of operators of a group. */
const groupText = (group, operators, pathTo) => [
  `// The operators of the group ${group}.`,
  ...exportsOf(operators, pathTo, (op) => op.constant)
    .filter((line) => !line.startsWith('export type'))
    .map((line) => line.replace('export', 'import').replace("'../", "'../../").replace("'../../generated/", "'../")),
  "import type { OpFunction } from '../../define/declaration.ts'",
  '',
  `export const operators: readonly OpFunction[] = [${operators.map((op) => op.constant).join(', ')}]`,
]

/** Writes the lists of the groups, and the names of the operators outside of core. */
function writeGroups(ops, operators, aliases) {
  const { groups, groupOf } = groupsIn(ops)
  const groupsOf = new Map(operators.map((op) => [op, groupOf(op.source ?? op.file, op.functional ?? op.constant)]))
  const inGroup = (group) => operators.filter((op) => groupsOf.get(op) === group)
  const listed = groups.filter((group) => group !== ALIASES)
  for (const group of listed) write(join(ops, 'generated/groups', `${group}.ts`), groupText(group, inGroup(group), pathsIn(ops)))
  const names = (of) => [...new Set(of.map((op) => op.name.replace(/_$/, '')))].join(' ')
  write(join(ops, 'generated/groupNames.ts'), [
    '// The names of the operators that are not in the group core, by group. In-place forms are in the group of their operators.',
    'export const namesOfGroups: Readonly<Record<string, string>> = {',
    ...listed.filter((group) => group !== 'core').map((group) => `  ${group}: ${JSON.stringify(names(inGroup(group)))},`),
    `  ${ALIASES}: ${JSON.stringify(names(aliases))},`,
    '}',
  ])
}

/** Writes src/ops/generated and the lint rules' list of methods below `folder`. */
export function generate(folder = root) {
  const ops = join(folder, 'src/ops')
  const pathTo = pathsIn(ops)
  const declared = findOperators(ops)
  const forms = inPlaceForms(ops, declared)
  write(join(ops, 'generated/inPlace.ts'), inPlaceText(forms, pathTo))
  const operators = [...declared, ...forms]
  checkUnique(operators, 'constant', (op) => op.constant)
  checkUnique(operators, 'name', (op) => `${op.namespace}.${op.name}`)
  const inNamespace = (namespace) => operators.filter((op) => op.namespace === namespace)
  const generated = (name) => join(ops, 'generated', name)
  write(generated('torch.ts'), ['// The operators of torch.', ...exportsOf(inNamespace('torch'), pathTo, (op) => op.name)])
  write(generated('functional.ts'), [
    '// The operators of torch.nn.functional.',
    ...exportsOf(inNamespace('torch.nn.functional'), pathTo, (op) => op.name),
  ])
  write(generated('linalg.ts'), ['// The operators of torch.linalg.', ...exportsOf(inNamespace('torch.linalg'), pathTo, (op) => op.name)])
  write(generated('fft.ts'), ['// The operators of torch.fft.', ...exportsOf(inNamespace('torch.fft'), pathTo, (op) => op.name)])
  write(generated('special.ts'), ['// The operators of torch.special.', ...exportsOf(inNamespace('torch.special'), pathTo, (op) => op.name)])
  write(generated('internal.ts'), [
    '// The operators of torch.ops.tensorfx.',
    ...exportsOf(inNamespace('torch.ops.tensorfx'), pathTo, (op) => op.name),
  ])
  write(generated('signatures.ts'), signaturesText(declared))
  const aliases = aliasesOf(ops, operators)
  write(
    generated('methods.ts'),
    methodsText(
      declared,
      forms.filter((form) => form.method),
      aliases,
      pathTo,
    ),
  )
  write(generated('operators.ts'), [
    '// All operators, by the names of their constants.',
    "export type {} from './methods.ts'",
    "export type * from './signatures.ts'",
    ...exportsOf(operators, pathTo, (op) => op.constant),
  ])
  write(generated('all.ts'), [
    '// All operators, as a list.',
    ...exportsOf(operators, pathTo, (op) => op.constant)
      .filter((line) => !line.startsWith('export type'))
      .map((line) => line.replace('export', 'import')),
    "import type { OpFunction } from '../define/declaration.ts'",
    '',
    `export const allOperators: readonly OpFunction[] = [${operators.map((op) => op.constant).join(', ')}]`,
  ])
  writeGroups(ops, operators, aliases)
  const methods = [...operators.filter((op) => op.method), ...aliases]
  write(join(folder, 'lint-rules/vocabulary.generated.js'), [
    '// The methods of tensors that operators have, and among them those whose result is a list of tensors.',
    `export const METHODS = ${words(methods)}`,
    `export const LIST_METHODS = ${words(methods.filter((op) => op.returnsList))}`,
  ])
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) generate()
