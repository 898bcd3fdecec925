// The isolated process in Node: a forked child that runs `src/entries/debugChild.ts`.
import type { Helper, StartHelper } from './isolator.ts'
import type { Answer } from './protocol.ts'
import { isAllowed } from '../../protocol/index.ts'
import { nodeModule } from '../node.ts'

/** The child's script. Tests that run on the sources point it at the built file, since Node 20 does not run TypeScript. */
export const childEntry: { url: string } = { url: new URL('../../entries/debugChild.js', import.meta.url).href }

/** Starts a child process. Null where there are none (browsers) or where they are not allowed (Deno without --allow-run and --allow-env). */
export function nodeHelper(): StartHelper | null {
  const processes = nodeModule('node:child_process')
  if (processes === null || !isAllowed({ name: 'run' }) || !isAllowed({ name: 'env' })) return null
  return async (): Promise<Helper> => {
    const child = processes.fork(new URL(childEntry.url), {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
      env: childEnv(),
    })
    // A helper that was not closed must not keep the program alive.
    child.unref()
    child.channel?.unref()
    return {
      post: (query) => void child.send(query),
      listen: (onAnswer, onDeath) => {
        child.removeAllListeners()
        child.channel?.ref()
        child.on('message', (message) => {
          child.channel?.unref()
          onAnswer(message as Answer)
        })
        child.on('exit', (code, signal) => onDeath(signal === null ? `exit code ${code}` : `signal ${signal}`))
        child.on('error', (error) => onDeath(error.message))
      },
      kill: () => {
        child.removeAllListeners()
        child.kill('SIGKILL')
      },
    }
  }
}

/** The child only judges, so it must not write repros. */
function childEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('TENSORFX_REPRO')))
}
