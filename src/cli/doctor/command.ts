// `tensorfx doctor`: what this machine offers to tensorfx, and what the environment says.
import { VERSION } from '../../version.ts'
import type { Line, Result } from '../line.ts'
import { ArgumentError } from '../../errors/index.ts'
import { PLAIN, aligned, paint, wrapped } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'
import { isOurs } from './variables.ts'
import type { Environment } from './variables.ts'

/** Runs `fn` with none of our variables set: a wrong one would already stop the modules from loading that say what is wrong with it. */
async function withoutVariables<T>(fn: () => Promise<T>): Promise<T> {
  const before = Object.entries(process.env).filter(([name]) => isOurs(name))
  for (const [name] of before) delete process.env[name]
  try {
    return await fn()
  } finally {
    Object.assign(process.env, Object.fromEntries(before))
  }
}

/** Runs `tensorfx doctor`. The exit code is 1 if there is a problem. */
export async function examine({ operands }: Line, terminal: Terminal = PLAIN, env: Environment = { ...process.env }): Promise<Result> {
  if (operands.length > 0) throw new ArgumentError(`doctor takes no names, got ${operands.join(' ')}.`)
  const { machineFacts, judgedVariables } = await withoutVariables(async () => {
    const [machine, variables] = await Promise.all([import('./machine.ts'), import('./variables.ts')])
    const judged = await variables.judge(env)
    return { machineFacts: await machine.machineFacts(env, judged.memoryLimit), judgedVariables: judged }
  })
  const { variables, unknown } = judgedVariables
  const problems = [
    ...machineFacts.flatMap(({ problem }) => problem ?? []),
    ...variables.flatMap(({ problem }) => problem ?? []),
    ...unknown.map(({ problem }) => problem),
  ]
  const width = (terminal.columns ?? Infinity) - 4
  const text = [
    `tensorfx ${VERSION}`,
    ...aligned(
      machineFacts.map(({ name, value }) => [`  ${name}`, value]),
      terminal,
    ),
    '',
    'Environment variables',
    ...aligned(
      variables.map(({ name, value, text: meaning, setBy }) => [
        `  ${name}`,
        value ?? '-',
        setBy === null ? meaning : `${meaning} (set by ${setBy})`,
      ]),
      terminal,
    ),
    '',
    ...(problems.length === 0
      ? [paint(terminal, 'green', 'No problems found.')]
      : [
          paint(terminal, 'red', `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`),
          ...problems.flatMap((problem) => wrapped(problem, width).map((line, i) => `${i === 0 ? '  - ' : '    '}${line}`)),
        ]),
  ].join('\n')
  return {
    text,
    code: problems.length === 0 ? 0 : 1,
    data: { version: VERSION, machine: machineFacts, variables, unknown, problems },
  }
}
