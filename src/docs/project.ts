// A project on disk: which of its files are documented, which are its tests, and what its package exports. Nothing needs to be configured: `src/` is documented if there is one,
// and otherwise all sources that are not built, ignored by git, or tests.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import type * as ts from 'typescript6'
import { ArgumentError } from '../errors/index.ts'
import { isObject } from '../protocol/index.ts'
import type { Compiler } from './compiler.ts'
import { readJson } from './json.ts'
import { baseOf, byText } from './model.ts'

/** What may be said about a project. */
export interface ProjectOptions {
  /** Globs of the files to document, separated by commas; default: `src/**`, or all sources. */
  readonly include?: string
  readonly exclude?: string
  /** Globs of the tests; default: folders `test`, `tests`, `__tests__` and `spec`, and names with `.test.` or `.spec.`. */
  readonly tests?: string
  /** The folder that pages are written to, which is never read. */
  readonly out?: string
}

/** A project. Paths are relative to its root, with `/`. */
export interface Project {
  readonly root: string
  readonly name: string
  readonly description: string
  readonly sources: readonly string[]
  readonly tests: readonly string[]
  /** The names under which the package exports each source. */
  readonly entries: ReadonlyMap<string, readonly string[]>
  readonly options: ts.CompilerOptions
}

const SOURCE = /\.[cm]?[jt]sx?$/
/** The compiler reads a backslash as a slash, and ids have a `#` after the path. */
const NOT_SOURCE = /\.d\.[cm]?ts$|\.min\.[cm]?js$|[#\\]/
const TEST = /(?:^|\/)(?:tests?|__tests__|spec)\/|\.(?:test|spec)\.[^/]+$/
const SKIPPED = /^(?:\..*|node_modules|bower_components|coverage)$/
/** Folders that builds write, where there is a `src` beside them. */
const BUILT = /^(?:dist|build|out|lib|es|esm|cjs|umd|types|typings)\//

/** A regular expression for globs that are separated by commas: `**`, `*`, `?` and `{a,b}`. */
export function globs(text: string): RegExp {
  const parts = text.split(/,(?![^{]*\})/).map((glob) =>
    glob
      .trim()
      .replaceAll(/[.+^$()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/\{([^}]*)\}/g, (_, of: string) => `(?:${of.replaceAll(',', '|')})`)
      .replaceAll(/\*\*\/?|\*|\?(?!:)/g, (mark) => (mark === '**/' ? '(?:.*/)?' : mark === '**' ? '.*' : mark === '*' ? '[^/]*' : '[^/]')),
  )
  return new RegExp(`^(?:${parts.join('|')})$`)
}

/** What package.json says; an empty object without one. */
function manifestOf(root: string): object {
  const path = join(root, 'package.json')
  if (!existsSync(path)) return {}
  const read = readJson(path)
  return isObject(read) ? read : {}
}

const textOf = (of: object, name: string): string => {
  const value: unknown = Reflect.get(of, name)
  return typeof value === 'string' ? value : ''
}

/** The files that git knows or would add; null where it knows none, as in a package that was installed. */
function fromGit(root: string): readonly string[] | null {
  try {
    const text = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 2 ** 28,
    })
    const files = text.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))
    return files.length === 0 ? null : [...new Set(files)]
  } catch {
    return null
  }
}

function walk(root: string, folder = ''): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return SKIPPED.test(entry.name) ? [] : walk(root, path)
    return entry.isFile() ? [path] : []
  })
}

const isGenerated = (root: string, path: string): boolean =>
  /^\s*(?:\/\/|\/\*).*@generated/.test(readFileSync(join(root, path), 'utf8').slice(0, 400).split('\n')[0] ?? '')

/** Every target that package.json names, with the name under which users import it. */
function targetsOf(manifest: object, name: string): readonly (readonly [target: string, entry: string])[] {
  const found: (readonly [string, string])[] = []
  const visit = (value: unknown, entry: string): void => {
    if (typeof value === 'string') found.push([value, entry])
    else if (Array.isArray(value)) for (const item of value) visit(item, entry)
    else if (isObject(value)) for (const [key, child] of Object.entries(value)) visit(child, key.startsWith('.') ? name + key.slice(1) : entry)
  }
  visit(Reflect.get(manifest, 'exports'), name)
  if (found.length === 0) for (const key of ['source', 'module', 'main', 'types', 'browser']) visit(Reflect.get(manifest, key), name)
  return found
}

/**
 * The source of a target: itself, or the file that is built into it. `dist/esm/a/b.js` may come from `src/esm/a/b.ts`, `src/a/b.ts` or `src/b.ts`. A file of the project that was not built has no
 * other source.
 */
function sourceOf(target: string, sources: ReadonlySet<string>, files: ReadonlySet<string>): string | null {
  const path = target.replace(/^\.\//, '')
  if (sources.has(path)) return path
  if (files.has(path) && !BUILT.test(path)) return null
  const parts = path.replace(/(?:\.d)?\.[cm]?[jt]sx?$/, '').split('/')
  for (let skip = 0; skip < parts.length; skip++)
    for (const folder of ['src/', 'source/', ''])
      for (const end of ['.ts', '.tsx', '.mts', '.cts', '.js', '.mjs', '.cjs', '.jsx', '/index.ts', '/index.js']) {
        const candidate = folder + parts.slice(skip).join('/') + end
        if (sources.has(candidate)) return candidate
      }
  return null
}

/** The sources that the package exports. Without any the index at the top is, and without one every module. */
function entriesOf(manifest: object, name: string, sources: readonly string[], files: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const [known, all] = [new Set(sources), new Set(files)]
  const found = new Map<string, Set<string>>()
  const add = (path: string, entry: string): void => void found.set(path, (found.get(path) ?? new Set()).add(entry))
  for (const [target, entry] of targetsOf(manifest, name)) {
    const path = sourceOf(target, known, all)
    if (path !== null) add(path, entry)
  }
  if (found.size === 0) for (const path of sources.filter((path) => /^(?:src\/)?index\.[cm]?[jt]sx?$/.test(path))) add(path, name)
  if (found.size === 0) for (const path of sources) add(path, `${name}/${path.replace(SOURCE, '')}`)
  return new Map([...found].map(([path, names]) => [path, [...names].toSorted(byText)]))
}

/** The compiler's options: those of tsconfig.json, with JavaScript read too. Nothing is written or reported. */
function optionsOf(ts: Compiler, root: string): ts.CompilerOptions {
  const path = join(root, 'tsconfig.json')
  const read = existsSync(path)
    ? ts.parseJsonConfigFileContent(ts.readConfigFile(path, ts.sys.readFile).config ?? {}, ts.sys, root, undefined, path).options
    : null
  const usual: ts.CompilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.Preserve,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    strict: true,
  }
  return {
    ...(read ?? usual),
    allowJs: true,
    checkJs: false,
    noEmit: true,
    skipLibCheck: true,
    incremental: false,
    composite: false,
    noUnusedLocals: false,
  }
}

/** Reads which files a project has. Throws ArgumentError if the folder is not there or has no sources. */
export function readProject(ts: Compiler, folder: string, { include, exclude, tests, out }: ProjectOptions = {}): Project {
  if (!existsSync(folder)) throw new ArgumentError(`there is no folder ${folder}.`)
  const root = realpathSync(folder)
  if (!statSync(root).isDirectory()) throw new ArgumentError(`${folder} is not a folder. Name the folder of a project.`)
  const manifest = manifestOf(root)
  const inRoot = (path: string | undefined): string | null => (path === undefined ? null : `${relative(root, resolve(path)).split(sep).join('/')}/`)
  const options = optionsOf(ts, root)
  const skipped = [inRoot(out), inRoot(options.outDir)].filter((path) => path !== null && path !== '/')
  const isExcluded = exclude === undefined ? null : globs(exclude)
  const isTest = tests === undefined ? TEST : globs(tests)
  const files = (fromGit(root) ?? walk(root))
    .map((path) => path.split(sep).join('/'))
    .filter((path) => SOURCE.test(path) && !NOT_SOURCE.test(path) && !path.split('/').some((part) => SKIPPED.test(part)))
    .filter((path) => !skipped.some((prefix) => prefix !== null && path.startsWith(prefix)) && isExcluded?.test(path) !== true)
    .toSorted(byText)
  const hasSrc = files.some((path) => path.startsWith('src/') && !isTest.test(path))
  const isSource =
    include === undefined
      ? (path: string): boolean => (hasSrc ? path.startsWith('src/') : !isBuiltTwice(path, files))
      : (path: string): boolean => globs(include).test(path)
  const sources = files.filter((path) => !isTest.test(path) && isSource(path) && !isGenerated(root, path))
  if (sources.length === 0)
    throw new ArgumentError(
      `${folder} has no TypeScript or JavaScript sources to document. Name the folder of the project, or its files with --include 'lib/**'.`,
    )
  const name = textOf(manifest, 'name') || baseOf(root.split(sep).join('/'))
  return {
    ...{ root, name, description: textOf(manifest, 'description'), sources, options },
    tests: files.filter((path) => isTest.test(path)),
    entries: entriesOf(manifest, name, sources, files),
  }
}

/** Whether a file is one of several builds of the same sources. Folders that builds usually write are read where there is nothing else. */
const isBuiltTwice = (path: string, files: readonly string[]): boolean =>
  BUILT.test(path) &&
  files.some((other) => !BUILT.test(other) && !TEST.test(other) && !/config|(?:^|\/)\.|^(?:scripts|bench|examples?|docs)\//.test(other))
