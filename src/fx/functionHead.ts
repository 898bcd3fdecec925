// The line that opens a generated function, with the types of its parameters when they were asked for.

/** How generated code tells types: TypeScript's annotations, or a comment above the function that editors read. */
export type TypeStyle = 'typescript' | 'jsdoc'

/** Types for the head of a function. */
export interface HeadTypes {
  readonly style: TypeStyle
  /** One for each parameter, as TypeScript writes it; null when unknown. */
  readonly parameters: readonly (string | null)[]
  readonly returns: string | null
  /** The body reads attributes of the module, whose class is not known here. */
  readonly usesThis: boolean
}

/** `function forward(x: Tensor, y: number = 2): Tensor {`. Parameters are texts: `x`, `y = 2`, `...rest`, `{ a, b = 1 } = {}`; a comment may stand behind a name. */
export function writeHead(name: string, parameters: readonly string[], types: HeadTypes | null): string {
  if (types === null) return `function ${name}(${parameters.join(', ')}) {`
  if (types.style === 'jsdoc') return `${docComment(parameters, types)}function ${name}(${parameters.join(', ')}) {`
  const typed = parameters.map((text, i) => typedParameter(text, types.parameters[i] ?? 'any'))
  if (types.usesThis) typed.unshift('this: any')
  return `function ${name}(${typed.join(', ')})${types.returns === null ? '' : `: ${types.returns}`} {`
}

function typedParameter(text: string, type: string): string {
  if (text.startsWith('{')) return text.replace(/\}(?: = \{\})?$/, (end) => `}: ${type}${end.slice(1)}`)
  return text.replace(/^(\.{3})?[\w$]+/, (name, rest) => `${name}: ${rest === undefined ? type : arrayOf(type)}`)
}

const arrayOf = (type: string): string => (/[ |]/.test(type) ? `(${type})[]` : `${type}[]`)

function docComment(parameters: readonly string[], types: HeadTypes): string {
  const lines = parameters.map((text, i) => ` * @param ${docParameter(text, types.parameters[i] ?? 'any')}`)
  if (types.returns !== null) lines.push(` * @returns {${types.returns}}`)
  return lines.length === 0 ? '' : ['/**', ...lines, ' */', ''].join('\n')
}

function docParameter(text: string, type: string): string {
  if (text.startsWith('{')) return `{${type}} [options]`
  if (text.startsWith('...')) return `{...${type}} ${text.slice(3)}`
  const [, name = '', fallback] = /^([\w$]+)(?: \/\*.*?\*\/)?(?: = (.*))?$/s.exec(text) ?? []
  return fallback === undefined ? `{${type}} ${name}` : `{${type}} [${name}=${fallback.replaceAll('*/', '* /')}]`
}
