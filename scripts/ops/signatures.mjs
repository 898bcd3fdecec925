// How operators are called, as TypeScript: the functions and the methods of Tensor, written from schemas. src/ops/define/schemaCalls.ts computes the same types inside
// TypeScript; these texts are what users see when they point at a call, and they cost the type checker nothing.
//
//     'topk(Tensor self, int k, int dim=-1, bool largest=True) -> (Tensor, Tensor)'
//     (self: Tensor, k: number, dim?: number | { readonly dim?: number; readonly largest?: boolean }, largest?: …) => readonly [Tensor, Tensor]

/** `log_softmax` -> `logSoftmax`, as protocol/names.ts does. */
export const camelCase = (name) => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a, b) => a + b.toUpperCase())

const BASES = {
  Tensor: 'Tensor',
  Scalar: 'number | ComplexNumber',
  int: 'number',
  SymInt: 'Size',
  float: 'number',
  bool: 'boolean',
  str: 'string',
  ScalarType: 'DType',
  Generator: 'Generator',
  any: 'unknown',
}

/** The arguments of a schema: their types as TypeScript, their names, whether they have a default, and whether they are only given by name. */
function argumentsOf(schema, numbers) {
  const inner = /\((.*)\) -> /s.exec(schema)[1]
  const parts = inner === '' ? [] : inner.split(', ')
  const star = parts.indexOf('*')
  return parts
    .filter((part) => part !== '*')
    .map((part, i) => {
      const [, type, list, optional, name, value] = /^(\w+)(?:\(\w!?\))?(\[\d*\])?(\?)? (\w+)(?:=(.*))?$/.exec(part) ?? []
      const base = BASES[type]
      if (base === undefined) throw new Error(`the schema '${schema}' has an argument '${part}' that cannot be read`)
      const one = base === 'Tensor' && list === undefined && numbers(name, i) ? 'Tensor | number | ComplexNumber' : base
      // PyTorch's programs give one number for several equal ones.
      const given = list === undefined ? one : base === 'number' || base === 'Size' ? `${base} | readonly ${base}[]` : `readonly ${one}[]`
      return {
        name: camelCase(name),
        type: optional !== undefined || value === 'None' ? `${given} | null` : given,
        hasDefault: value !== undefined,
        byName: star >= 0 && i >= star,
      }
    })
}

/** `-> (Tensor, Tensor)` as TypeScript. */
function resultOf(schema) {
  const text = /\) -> (.*)$/s.exec(schema)[1].replaceAll(/\(\w!?\)/g, '')
  if (text === '()') return 'void'
  if (text.startsWith('(')) return `readonly [${text.slice(1, -1)}]`
  return text === 'Tensor[]' ? 'readonly Tensor[]' : text === 'any' ? 'Tensor | readonly Tensor[]' : text
}

const member = ({ name, type, hasDefault }) => `readonly ${name}${hasDefault ? '?' : ''}: ${type}`

/** More options than this get an interface of their own, so that signatures stay readable. */
const MOST_INLINE = 3

/**
 * The signature of an operator's function. Arguments with defaults may be given by name in a trailing object, which can take the place of any of them; arguments after
 * `*` only there. `interfaces` are those that the signature names.
 */
export function signatureOf({ constant, schema, pointwise, numberFirst }) {
  const all = argumentsOf(schema, (name, i) => (i === 0 ? numberFirst : pointwise && name !== 'self'))
  const positional = all.filter((argument) => !argument.byName)
  const byName = all.filter((argument) => argument.byName)
  const optional = positional.filter((argument) => argument.hasDefault)
  const interfaces = []
  const named = optional.length + byName.length > MOST_INLINE ? `${constant[0].toUpperCase()}${constant.slice(1).replace(/_$/, '')}Options` : null
  if (named !== null)
    interfaces.push(`export interface ${named} {\n${[...optional, ...byName].map((argument) => `  ${member(argument)}\n`).join('')}}`)
  const options = (first) => named ?? `{ ${[...optional.slice(first), ...byName].map(member).join('; ')} }`
  const parameters = positional.map((argument) =>
    argument.hasDefault ? `${argument.name}?: ${argument.type} | ${options(optional.indexOf(argument))}` : `${argument.name}: ${argument.type}`,
  )
  // Without a default among them the options object is required: then every positional argument is, too.
  if (byName.length > 0) parameters.push(`options${byName.every((argument) => argument.hasDefault) ? '?' : ''}: ${options(optional.length)}`)
  return { calls: [{ parameters, result: resultOf(schema) }], interfaces }
}

/** The parts of a text between the separators that are not inside brackets. */
export function splitAt(text, separators) {
  const parts = ['']
  let depth = 0
  for (const [i, char] of [...text].entries()) {
    if ('([{<'.includes(char)) depth++
    if (')]}'.includes(char) || (char === '>' && text[i - 1] !== '=')) depth--
    if (depth === 0 && separators.includes(char)) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

/** The signatures of a function type as it is written: `(self: Tensor) => Tensor`, `{ (self: Tensor): Tensor; … }`, or the name of such a type in the same file. */
export function signaturesIn(type, text) {
  const [, name, given] = /^(\w+)(?:<(.*)>)?$/s.exec(type) ?? []
  if (name !== undefined) {
    const [head, parameter] = new RegExp(`^(?:export )?(?:type ${name}(?:<(\\w+).*?>)? =|interface ${name} (?={))`, 'm').exec(text) ?? []
    if (head === undefined) throw new Error(`there is no type ${name} in the same file`)
    const body = firstStatement(text.slice(text.indexOf(head) + head.length))
    return signaturesIn(parameter === undefined ? body : body.replaceAll(new RegExp(`\\b${parameter}\\b`, 'g'), given), text)
  }
  if (type.startsWith('{')) {
    const inner = type.slice(1, -1).replaceAll(/\/\*\*.*?\*\//gs, '')
    return splitAt(inner, ';\n').map((part) => callIn(part, ':'))
  }
  return [callIn(type, ' =>')]
}

/** A text up to the end of its first line that is not inside brackets. */
function firstStatement(text) {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    if ('([{'.includes(text[i])) depth++
    if (')]}'.includes(text[i])) depth--
    if (text[i] === '\n' && depth === 0 && text.slice(0, i).trim() !== '') return text.slice(0, i).trim()
  }
  return text.trim()
}

/** One signature; `arrow` separates its parameters from its result. */
function callIn(text, arrow) {
  const end = splitEnd(text)
  if (!text.startsWith('(') || !text.slice(end + 1).startsWith(arrow)) throw new Error(`'${text}' is not a signature`)
  return { parameters: splitAt(text.slice(1, end), ','), result: text.slice(end + 1 + arrow.length).trim() }
}

/** Where the bracket that opens a text is closed. */
function splitEnd(text) {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') depth++
    if (text[i] === ')' && --depth === 0) return i
  }
  return -1
}

/** `{ parameters, result }` without its first parameter: how the method is called. */
export const asMethod = ({ parameters, result }) => ({ parameters: parameters.slice(1), result })

/** The names of types in signatures, but for those that TypeScript has. */
export const typeNamesIn = (text) => [
  ...new Set([...text.replaceAll(/'[^']*'/g, '').matchAll(/(?<![\w.])[A-Z]\w*(?=[^\w?:]|\?? *$|$)(?!\??:)/g)].map(([name]) => name)),
]
