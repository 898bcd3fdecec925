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

/** Returns the score: the percentage of mutants that were killed or ran out of time. */
export function printReport(root, mutants, plans, results) {
  const count = { killed: 0, survived: 0, timeout: 0, unreached: 0 }
  const print = mutantPrinter(root)
  for (const [i, mutant] of mutants.entries()) {
    const { status } = results[i]
    count[status]++
    if (status === 'killed' || status === 'timeout') continue
    const tests = Object.values(plans[i].specs).flat().length
    print(mutant, status === 'unreached' ? ', no test reaches it' : `, survived ${tests} tests`)
  }
  const score = mutants.length === 0 ? 100 : (100 * (count.killed + count.timeout)) / mutants.length
  console.log(
    `${count.killed} killed, ${count.timeout} timed out, ${count.survived} survived, ${count.unreached} unreached: ${score.toFixed(0)}% of ${mutants.length}`,
  )
  return score
}
