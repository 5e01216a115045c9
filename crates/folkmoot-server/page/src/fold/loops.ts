/** Groups of agents that can all reach one another; iterative, as a graph may be a chain of thousands. */
export function loopsOf(edges: readonly { from: string; to: string }[]): string[][] {
  const next = new Map<string, string[]>();
  const toItself = new Set<string>();
  const out = (agent: string): string[] => {
    const known = next.get(agent) ?? [];
    next.set(agent, known);
    return known;
  };
  for (const { from, to } of edges) {
    out(from).push(to);
    out(to);
    if (from === to) toItself.add(from);
  }
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const found: string[][] = [];
  for (const start of next.keys()) {
    if (index.has(start)) continue;
    const way: { agent: string; at: number }[] = [{ agent: start, at: 0 }];
    for (let top = way.at(-1); top; top = way.at(-1)) {
      const { agent } = top;
      if (top.at === 0) {
        index.set(agent, index.size);
        low.set(agent, index.get(agent) ?? 0);
        stack.push(agent);
        onStack.add(agent);
      }
      const to = next.get(agent)?.[top.at++];
      if (to === undefined) {
        way.pop();
        const parent = way.at(-1)?.agent;
        if (parent !== undefined) low.set(parent, Math.min(low.get(parent) ?? 0, low.get(agent) ?? 0));
        if (low.get(agent) === index.get(agent)) found.push(component(stack, onStack, agent));
      } else if (!index.has(to)) {
        way.push({ agent: to, at: 0 });
      } else if (onStack.has(to)) {
        low.set(agent, Math.min(low.get(agent) ?? 0, index.get(to) ?? 0));
      }
    }
  }
  return found.filter((agents) => agents.length > 1 || agents.some((agent) => toItself.has(agent)));
}

function component(stack: string[], onStack: Set<string>, root: string): string[] {
  const agents: string[] = [];
  for (let agent = stack.pop(); agent !== undefined; agent = stack.pop()) {
    onStack.delete(agent);
    agents.unshift(agent);
    if (agent === root) break;
  }
  return agents;
}
