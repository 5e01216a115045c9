/** One server-sent event. */
export interface Message {
  id: string;
  event: string;
  data: string;
}

/**
 * Reads server-sent events from text that comes in any pieces, as the standard has it: lines end in LF, CR or CRLF, also
 * where a piece ends between the two.
 */
export class Reader {
  private rest = '';
  private afterReturn = false;
  private id = '';
  private event = '';
  private data: string[] = [];

  push(text: string): Message[] {
    const found: Message[] = [];
    let piece = text;
    if (this.afterReturn && piece !== '') {
      if (piece.startsWith('\n')) piece = piece.slice(1);
      this.afterReturn = false;
    }
    this.afterReturn = piece.endsWith('\r');
    const lines = (this.rest + piece).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = this.line(line);
      if (message) found.push(message);
    }
    return found;
  }

  private line(line: string): Message | null {
    if (line === '') return this.dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    else if (field === 'id' && !value.includes('\0')) this.id = value;
    return null;
  }

  private dispatch(): Message | null {
    const { id, event, data } = this;
    this.event = '';
    this.data = [];
    return data.length === 0 ? null : { id, event: event || 'message', data: data.join('\n') };
  }
}
