import { type KeyboardEvent, type ReactNode, useId, useRef, useSyncExternalStore } from 'react';

export interface Tab {
  id: string;
  name: string;
  body: ReactNode;
}

/** Views of which one is shown; arrow keys go from one to the next. */
export function Tabs({ label, tabs, chosen, onChoose }: { label: string; tabs: Tab[]; chosen: string; onChoose(id: string): void }) {
  const own = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = tabs.find((tab) => tab.id === chosen) ?? tabs[0];
  const keyed = (event: KeyboardEvent): void => {
    const at = tabs.findIndex((tab) => tab.id === shown?.id);
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (step === 0 || !next) return;
    event.preventDefault();
    onChoose(next.id);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <section className="panel tabs">
      <div className="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={keyed}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${own}-${tab.id}`}
            data-tab={tab.id}
            aria-selected={tab === shown}
            aria-controls={`${own}-panel`}
            tabIndex={tab === shown ? 0 : -1}
            onClick={() => onChoose(tab.id)}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div className="tab-panel" role="tabpanel" id={`${own}-panel`} aria-labelledby={`${own}-${shown?.id}`}>
        {shown?.body}
      </div>
    </section>
  );
}

const WIDE = '(min-width: 1000px)';

/** Whether there is room for the picture and the conversation beside each other. */
export function useIsWide(): boolean {
  return useSyncExternalStore(
    (changed) => {
      const query = matchMedia(WIDE);
      query.addEventListener('change', changed);
      return () => query.removeEventListener('change', changed);
    },
    () => matchMedia(WIDE).matches,
  );
}
