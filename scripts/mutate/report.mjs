// Prints the mutants that no test killed, and the score.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const oneLine = (text) => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > 140 ? `${line.slice(0, 137)}...` : line
}

/** The text between two places of a file. */
function textAt(lines, { start, end }) {
  if (start.line === end.line) return lines[start.line].slice(start.column, end.column)
  return [lines[start.line].slice(start.column), ...lines.slice(start.line + 1, end.line), lines[end.line].slice(0, end.column)].join('\n')
}

/** A function that prints the place and the change of a mutant, and what is `said` of it. */
export function mutantPrinter(root) {
  const sources = new Map()
  return ({ fileName, location, mutatorName, replacement }, said = '') => {
    if (!sources.has(fileName)) sources.set(fileName, readFileSync(fileName, 'utf8').split('\n'))
    const { line, column } = location.start
    console.log(`${relative(root, fileName)}:${line + 1}:${column + 1} ${mutatorName}${said}`)
    console.log(`  - ${oneLine(textAt(sources.get(fileName), location))}`)
    console.log(`  + ${oneLine(replacement)}`)
  }
}

/** Prints the mutants of a path, each with its plan and result. Returns the score: the percentage that was killed or ran out of time. */
export function printReport(root, path, tested) {
  const count = { killed: 0, survived: 0, timeout: 0, unreached: 0 }
  const print = mutantPrinter(root)
  for (const { mutant, plan, result } of tested) {
    const { status } = result
    count[status]++
    if (status === 'killed' || status === 'timeout') continue
    const tests = Object.values(plan.specs).flat().length
    print(mutant, status === 'unreached' ? ', no test reaches it' : `, survived ${tests} tests`)
  }
  const score = tested.length === 0 ? 100 : (100 * (count.killed + count.timeout)) / tested.length
  console.log(
    `${path}: ${count.killed} killed, ${count.timeout} timed out, ${count.survived} survived, ${count.unreached} unreached: ${score.toFixed(0)}% of ${tested.length}`,
  )
  return score
}
