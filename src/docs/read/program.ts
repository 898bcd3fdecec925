// A program that the compiler has read, and how its symbols lead to the ids of the model.
import { relative, sep } from 'node:path'
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import type { Project } from '../project.ts'
import type { Declarations } from './declarations.ts'

/** What all readers work on. */
export interface Program {
  readonly ts: Compiler
  readonly checker: ts.TypeChecker
  readonly project: Project
  readonly declarations: Declarations
  /** The syntax tree of a file of the project. */
  readonly fileOf: (path: string) => ts.SourceFile | undefined
}

/** What the compiler reads files with. Doc comments are parsed in the files that are documented, and in JavaScript, where types are in them. */
export function hostOf(ts: Compiler, options: ts.CompilerOptions, isDocumented: (file: string) => boolean): ts.CompilerHost {
  const host = ts.createCompilerHost(options)
  const jsDocParsingMode = ts.JSDocParsingMode.ParseForTypeInfo
  return {
    ...host,
    getSourceFile: (name, how, ...rest) =>
      host.getSourceFile(name, typeof how !== 'object' || isDocumented(name) ? how : { ...how, jsDocParsingMode }, ...rest),
  }
}

/** The path of a file from the root of the project, with `/`. */
export const pathIn = (root: string, file: string): string => relative(root, file).split(sep).join('/')

export const isJavaScript = ({ fileName }: ts.SourceFile): boolean => /\.[cm]?jsx?$/.test(fileName)

/** Where the lines of files begin. */
const starts = new WeakMap<ts.SourceFile, readonly number[]>()

/** The line of a position, from 1, as editors and pages count lines. For the compiler U+2028 and U+2029 end lines, too. */
export function lineOf(file: ts.SourceFile, position: number): number {
  const lines = starts.get(file) ?? [0, ...[...file.text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  starts.set(file, lines)
  let line = 0
  for (let above = lines.length; line < above;) {
    const middle = (line + above) >> 1
    if ((lines[middle] ?? 0) <= position) line = middle + 1
    else above = middle
  }
  return line
}

/** What a symbol stands for, behind the names under which it was imported and exported. */
export function behind({ ts, checker }: Pick<Program, 'ts' | 'checker'>, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** The id of a symbol; null if it is not one of the model. */
export function idOf(program: Program, symbol: ts.Symbol | undefined, depth = 0): string | null {
  if (symbol === undefined || depth > 8) return null
  const { ts, checker, declarations } = program
  const real = behind(program, symbol)
  for (const node of real.declarations ?? []) {
    const id = declarations.idOf(node)
    if (id !== undefined) return id
  }
  for (const node of real.declarations ?? []) {
    // `module.exports = { f, g: h }`, `export default f`, `const g = f`: the names lead on to a declaration.
    const target = ts.isShorthandPropertyAssignment(node)
      ? checker.getShorthandAssignmentValueSymbol(node)
      : ts.isPropertyAssignment(node) && ts.isIdentifier(node.initializer)
        ? checker.getSymbolAtLocation(node.initializer)
        : ts.isExportAssignment(node)
          ? checker.getSymbolAtLocation(node.expression)
          : ts.isBinaryExpression(node)
            ? checker.getSymbolAtLocation(node.right)
            : ts.isPropertyAccessExpression(node) && ts.isBinaryExpression(node.parent)
              ? checker.getSymbolAtLocation(node.parent.right)
              : undefined
    const id = target === real ? null : idOf(program, target, depth + 1)
    if (id !== null) return id
  }
  return null
}
