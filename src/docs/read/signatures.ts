// How a declaration is written: `function f(x: number): string`, `class A extends B`. Types are those that are written there; where one is not, the compiler's, without truncation for
// functions.
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import type { Declared } from './declarations.ts'
import { isJavaScript } from './program.ts'
import type { Program } from './program.ts'

/** Longer types of values that have no written type are cut. */
const LONGEST = 600

/** Paths of this machine that the compiler writes before types of other modules. */
const withoutPaths = (text: string): string => text.replaceAll(/import\("[^"]*"(?:, \{[^}]*\})?\)\./g, '').replaceAll('\r\n', '\n')

/** The signatures of a declaration, in order: those of all overloads, or one. */
export function signaturesOf(program: Program, declared: Declared): readonly string[] {
  const texts = declared.nodes.flatMap((node) => textsOf(program, declared, node))
  // The implementation is no overload.
  const { ts } = program
  const functions = declared.nodes.filter(
    (node) => ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isConstructorDeclaration(node),
  )
  const hasOverloads = functions.length > 1 && functions.some((node) => 'body' in node && node.body === undefined)
  const implementation = hasOverloads
    ? declared.nodes.findIndex((node) => 'body' in node && node.body !== undefined && !ts.isModuleDeclaration(node))
    : -1
  return [...new Set(texts.filter((_, i) => i !== implementation))].map(withoutPaths)
}

/** The signature of a function whose types are all written, each on one line without a comment; null for others. The compiler needs most of its time to infer types. */
function writtenSignature(ts: Compiler, node: ts.SignatureDeclaration, file: ts.SourceFile): string | null {
  const isConstructor = ts.isConstructorDeclaration(node)
  const isSetter = ts.isSetAccessor(node)
  if (isJavaScript(file) || (node.type === undefined && !isConstructor && !isSetter)) return null
  const parameters = node.parameters.map(({ name, type, initializer, questionToken, dotDotDotToken }) => {
    const text = type?.getText(file) ?? literalType(ts, initializer)
    const mark = questionToken !== undefined || initializer !== undefined ? '?' : ''
    return text === null || !ts.isIdentifier(name) ? null : `${dotDotDotToken === undefined ? '' : '...'}${name.text}${mark}: ${text}`
  })
  const generic = node.typeParameters?.map((of) => of.getText(file)) ?? []
  const result = isConstructor || isSetter ? 'void' : (node.type?.getText(file) ?? '')
  const isOneLine = [...parameters, ...generic, result].every((text) => text !== null && !/\n|\/[/*]/.test(text))
  return isOneLine ? `${generic.length === 0 ? '' : `<${generic.join(', ')}>`}(${parameters.join(', ')}): ${result}` : null
}

/** The type of a parameter with such a default; null where it is no literal. */
function literalType(ts: Compiler, value: ts.Expression | undefined): string | null {
  if (value === undefined) return null
  if (ts.isNumericLiteral(value)) return 'number'
  if (ts.isStringLiteralLike(value)) return 'string'
  return value.kind === ts.SyntaxKind.TrueKeyword || value.kind === ts.SyntaxKind.FalseKeyword ? 'boolean' : null
}

/** The signature of one of its nodes; one for each, so that places stay the same. */
function textsOf({ ts, checker }: Program, { name, file }: Declared, node: ts.Node): readonly string[] {
  const last = name.slice(name.lastIndexOf('.', name.endsWith(']') ? name.indexOf('[') : name.length) + 1)
  const flags = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope
  const word = (kind: ts.SyntaxKind): boolean => ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some((modifier) => modifier.kind === kind)
  const before = [
    word(ts.SyntaxKind.ProtectedKeyword) ? 'protected ' : '',
    word(ts.SyntaxKind.StaticKeyword) ? 'static ' : '',
    word(ts.SyntaxKind.AbstractKeyword) ? 'abstract ' : '',
    word(ts.SyntaxKind.ReadonlyKeyword) ? 'readonly ' : '',
  ].join('')
  const called = (of: ts.SignatureDeclaration): string => {
    const written = writtenSignature(ts, of, file)
    if (written !== null) return written
    const signature = checker.getSignatureFromDeclaration(of)
    return signature === undefined ? '()' : checker.signatureToString(signature, of, flags)
  }
  const valued = (of: ts.Node, written: ts.TypeNode | undefined): string => {
    if (written !== undefined) return written.getText(file)
    const text = checker.typeToString(checker.getTypeAtLocation(of), of, flags)
    return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
  }
  const head = (of: ts.ClassLikeDeclaration | ts.InterfaceDeclaration): string => {
    const parameters = of.typeParameters === undefined ? '' : `<${of.typeParameters.map((p) => p.getText(file)).join(', ')}>`
    const heritage = (of.heritageClauses ?? []).map((clause) => ` ${clause.getText(file)}`).join('')
    return `${before}${ts.isInterfaceDeclaration(of) ? 'interface' : 'class'} ${last}${parameters}${heritage}`
  }
  const printed = (of: ts.Node): string =>
    ts
      .createPrinter({ removeComments: true })
      .printNode(ts.EmitHint.Unspecified, of, file)
      .replace(/^(?:(?:export|declare|default) )+/, '')

  if (ts.isClassLike(node) || ts.isInterfaceDeclaration(node)) return [head(node)]
  if (ts.isTypeAliasDeclaration(node) || ts.isEnumDeclaration(node)) return [printed(node)]
  if (ts.isModuleDeclaration(node)) return [`namespace ${last}`]
  if (ts.isConstructorDeclaration(node)) return [`constructor${called(node).replace(/: [^:]*$/, '')}`]
  if (ts.isFunctionDeclaration(node)) return [`function ${last}${called(node)}`]
  if (ts.isMethodDeclaration(node) || ts.isMethodSignature(node))
    return [`${before}${last}${node.questionToken === undefined ? '' : '?'}${called(node)}`]
  if (ts.isAccessor(node))
    return [ts.isGetAccessor(node) ? `${before}get ${last}${called(node)}` : `${before}set ${last}${called(node).replace(/: \w+$/, '')}`]
  const value = ts.isBinaryExpression(node)
    ? node.right
    : ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node)
      ? node.initializer
      : ts.isExportAssignment(node)
        ? node.expression
        : undefined
  if (value !== undefined && (ts.isArrowFunction(value) || ts.isFunctionExpression(value)))
    return [`${name.includes('.') ? before : 'function '}${last}${called(value)}`]
  if (value !== undefined && ts.isClassExpression(value)) return [head(value)]
  if (ts.isPropertyDeclaration(node) || ts.isPropertySignature(node) || ts.isParameter(node))
    return [`${before}${last}${node.questionToken === undefined ? '' : '?'}: ${valued(node, node.type)}`]
  if (ts.isVariableDeclaration(node)) {
    const isConst = (ts.getCombinedNodeFlags(node) & ts.NodeFlags.Const) !== 0
    return [`${isConst ? 'const' : 'let'} ${last}: ${valued(node, node.type)}`]
  }
  return [`${name.includes('.') ? '' : 'const '}${last}: ${valued(value ?? node, undefined)}`]
}
