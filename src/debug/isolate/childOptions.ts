// What a child process inherits from this one: the options of Node and the environment, without what only one process can have or what would make the child do something else.

/** Options, by how they begin, that open a debugger, take code or files instead of the child's script, or write profiles. */
const NOT_INHERITED_PREFIXES: readonly string[] = [
  '--inspect',
  '--debug',
  '--eval=',
  '--print=',
  '--input-type',
  '--test',
  '--watch',
  '--cpu-prof',
  '--heap-prof',
]

/** The same, as whole words. */
const NOT_INHERITED: ReadonlySet<string> = new Set([
  ...['--eval', '-e', '--print', '-p', '-pe'],
  ...['--interactive', '-i', '--check', '-c', '-'],
  ...['--run', '--prof'],
])

const isInherited = (option: string): boolean => !NOT_INHERITED.has(option) && !NOT_INHERITED_PREFIXES.some((prefix) => option.startsWith(prefix))

/** Those of them whose value is the next argument. */
const WITH_VALUE: ReadonlySet<string> = new Set([
  ...['--eval', '-e', '--print', '-p', '-pe', '--input-type', '--run', '--watch-path'],
  ...['--inspect-port', '--debug-port', '--inspect-publish-uid'],
  ...['--cpu-prof-dir', '--cpu-prof-name', '--cpu-prof-interval'],
  ...['--heap-prof-dir', '--heap-prof-name', '--heap-prof-interval'],
])

const takesValue = (option: string): boolean => WITH_VALUE.has(option) || /^--test-[a-z-]+$/.test(option)

/** The options of Node that a child gets: those of this process, such as loaders and conditions, except those that only this process may have. */
export function childOptions(given: readonly string[]): string[] {
  const options: string[] = []
  for (let i = 0; i < given.length; i++) {
    const option = given[i] ?? ''
    if (isInherited(option)) options.push(option)
    else if (takesValue(option) && given[i + 1]?.startsWith('-') === false) i++
  }
  return options
}

/** In NODE_OPTIONS, the options of debuggers, which would make the child wait or take this process's port, with the value that follows them. */
const DEBUGGER_OPTIONS = /(?<=^|\s)(?:--(?:(?:inspect|debug)-port|inspect-publish-uid)\s+[^-\s]\S*|--(?:inspect|debug)\S*)/g

/** The environment of a child, which only judges: it must not write repros, and not wait for a debugger. */
export function childEnv(given: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const env = Object.fromEntries(Object.entries(given).filter(([key]) => !key.startsWith('TENSORFX_REPRO')))
  const { NODE_OPTIONS: options } = env
  return options === undefined ? env : { ...env, NODE_OPTIONS: options.replace(DEBUGGER_OPTIONS, '').trim() }
}
