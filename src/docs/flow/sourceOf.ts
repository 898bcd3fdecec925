// Which source a loaded file was built from: by its source map, or itself.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'

/** The text of a source map, from a data address or the file beside the code; null without one. */
function mapOf(path: string, code: string): string | null {
  const url = [...code.matchAll(/^\/\/[#@] sourceMappingURL=(\S+)\s*$/gm)].at(-1)?.[1]
  if (url === undefined) return null
  const data = /^data:application\/json[^,]*?(;base64)?,(.*)$/.exec(url)
  if (data !== null) return data[1] === undefined ? decodeURIComponent(data[2] ?? '') : Buffer.from(data[2] ?? '', 'base64').toString('utf8')
  const file = join(dirname(path), url)
  return existsSync(file) ? readFileSync(file, 'utf8') : null
}

/** The path of the source from the root, with `/`; null for files outside of the project and for packages. */
export function sourceOf(root: string, path: string, code: string): string | null {
  const inRoot = (file: string): string | null => {
    const from = relative(root, file)
    return from.startsWith('..') || from.split(sep).includes('node_modules') ? null : from.split(sep).join('/')
  }
  // Code of `node -e` has no file.
  if (!existsSync(path)) return null
  const real = realpathSync(path)
  if (inRoot(real) === null) return null
  const map = mapOf(real, code)
  if (map === null) return inRoot(real)
  try {
    const { sources, sourceRoot = '' }: { readonly sources?: unknown; readonly sourceRoot?: string } = JSON.parse(map)
    // Bundles have several sources, whose functions cannot be told apart by name.
    if (!Array.isArray(sources) || sources.length !== 1 || typeof sources[0] !== 'string') return inRoot(real)
    return inRoot(resolve(dirname(real), sourceRoot, sources[0]))
  } catch {
    return inRoot(real)
  }
}
