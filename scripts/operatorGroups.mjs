// The groups of operators, which programs load one by one: src/ops/groups.json says which files belong to a group, by folder, by file, or `file#constant` for one
// operator; the longest path counts.
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The group that other names of operators form. */
export const ALIASES = 'aliases'

/** The groups of the operators below `ops`, a folder like src/ops. */
export function groupsIn(ops) {
  const table = Object.entries(JSON.parse(readFileSync(join(ops, 'groups.json'), 'utf8'))).flatMap(([group, paths]) =>
    paths.map((path) => ({ group, path })),
  )
  const matches = (path, file, constant) => path === file || path === `${file}#${constant}` || (path.endsWith('/') && file.startsWith(path))
  const pathOf = (file) => relative(ops, file).replaceAll('\\', '/')
  return {
    /** The names of the groups, in the order of the table. */
    groups: [...new Set(table.map(({ group }) => group)), ALIASES],

    /** The group of an operator: its file and its constant. Throws if there is none. */
    groupOf(file, constant) {
      const place = pathOf(file)
      const [found] = table.filter(({ path }) => matches(path, place, constant)).toSorted((a, b) => b.path.length - a.path.length)
      if (found === undefined)
        throw new Error(`src/ops/${place} declares operators, and src/ops/groups.json does not say of which group. Add it to one.`)
      return found.group
    },

    /** The paths of the table that none of the operators is at. */
    unusedPaths(operators) {
      const places = operators.map((op) => ({ file: pathOf(op.file), constant: op.constant }))
      return table.filter(({ path }) => !places.some(({ file, constant }) => matches(path, file, constant))).map(({ path }) => path)
    },
  }
}
